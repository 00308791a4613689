"""A PostgreSQL server for measurements: made on the spot, durable as in service, gone afterwards."""
import contextlib
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

from servers import NotServing, free_port, running

MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
# What an operator of a machine of this size would set: a quarter of its memory, as the server's manual advises;
# the rest is Debian's default.
SETTINGS = {"shared_buffers": f"{MEMORY // 4 >> 20}MB", "max_wal_size": "4GB", "listen_addresses": ""}


def programs():
    """The newest of the installed versions."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found:
        raise NotServing("there is no PostgreSQL on this machine: scripts/setup installs it")
    return found[-1].parent


def owner():
    """The server refuses to run as root; then it is the system's own user."""
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []


@contextlib.contextmanager
def database():
    """Yields the address of an empty database and the server's first process."""
    with tempfile.TemporaryDirectory(prefix="postgres-") as name:
        home = pathlib.Path(name)
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(home, user.pw_uid, user.pw_gid)
        place, port = programs(), free_port()
        subprocess.run([*owner(), place / "initdb", "-D", home / "data", "-U", "sealbell", "-A", "trust", "-E", "UTF8",
                        "--no-locale", "--no-sync"], check=True, capture_output=True, cwd=home)
        settings = [word for key, value in SETTINGS.items() for word in ("-c", f"{key}={value}")]
        command = [*owner(), str(place / "postgres"), "-D", str(home / "data"), "-p", str(port), "-k", str(home),
                   *settings]
        url = f"postgresql://sealbell@/bench?host={home}&port={port}"

        def is_ready():
            probe = subprocess.run(["psql", maintenance(url), "-qc", "SELECT 1"],
                                   capture_output=True)
            return probe.returncode == 0

        with running(command, home, is_ready) as server:
            subprocess.run(["psql", maintenance(url), "-qc", "CREATE DATABASE bench"], check=True,
                           capture_output=True)
            yield url, server.pid


def maintenance(url):
    """The database that is always there."""
    return url.replace("@/bench?", "@/postgres?")


def fresh(url):
    """Empties the database by making it anew; nobody may be connected."""
    for statement in ["DROP DATABASE bench", "CREATE DATABASE bench"]:
        subprocess.run(["psql", maintenance(url), "-qc", statement], check=True, capture_output=True)
    return url


if shutil.which("psql") is None:
    raise SystemExit("bench: no psql on this machine: scripts/setup installs it")
