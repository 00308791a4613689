"""What the rows of the interop run share: finding peers, starting servers, certificates, judgement."""
import contextlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SEALBELL = os.environ["SEALBELL_BIN"]
READY_SECONDS = 30
END_SECONDS = 20


class NotRunnable(Exception):
    """The peer cannot be had here; the text says why."""


class Failed(Exception):
    """The peer and we do not agree; the text says on what."""


def expect(seen, wanted, what):
    """Raises unless both are equal. `what` names the step; values of a test run are no secrets."""
    if seen != wanted:
        raise Failed(f"{what}: {seen!r} instead of {wanted!r}")


def need(*names):
    for name in names:
        if shutil.which(name) is None:
            raise NotRunnable(f"no {name} on this machine")


def need_modules(*names):
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise NotRunnable(f"PyPI's {name} is not installed in .venv")


def version(command, pattern):
    told = subprocess.run(command, capture_output=True, text=True)
    found = re.search(pattern, told.stdout + told.stderr)
    return found.group(1) if found else "?"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def certificates(folder, *names):
    """A CA and a leaf for 127.0.0.1, localhost and further names, made on the spot."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=interop CA")
    openssl("req", *key, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", "/CN=localhost")
    subjects = ",".join(["DNS:localhost", "IP:127.0.0.1", *("DNS:" + name for name in names)])
    (folder / "leaf.ext").write_text(
        f"subjectAltName={subjects}\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n")
    openssl("x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "leaf.ext", "-out", "leaf.pem")


@contextlib.contextmanager
def running(command, folder, is_ready, log_name="server.log", environment=None, absent=NotRunnable):
    """Starts a server, waits until `is_ready()`, and ends it by its own process id."""
    log = open(folder / log_name, "wb")
    process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                               env={**os.environ, **(environment or {})})
    try:
        ends = time.monotonic() + READY_SECONDS
        while not is_ready():
            said = (folder / log_name).read_text(errors="replace")[-300:]
            if process.poll() is not None:
                raise absent(f"{pathlib.Path(command[0]).name} ended at once: {said}")
            if time.monotonic() > ends:
                raise absent(f"{pathlib.Path(command[0]).name} was not ready in {READY_SECONDS} s: {said}")
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()


def answers(port):
    """A test for `running`: whether the port takes connections."""
    def ask():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False
    return ask


@contextlib.contextmanager
def relay(folder, *settings):
    """A sandbox relay of its own state on free ports; yields what its run file says."""
    state = folder / "state"
    command = [SEALBELL, "serve", "--sandbox", "--state", str(state)]
    for setting in ("listeners.public.bind=127.0.0.1:0", "listeners.public.serves=zulip-main",
                    "listeners.admin.bind=127.0.0.1:0", *settings):
        command += ["--set", setting]
    file = state / "run.json"
    # Not ready: ours to answer for, so it is a failure.
    with running(command, folder, file.exists, "relay.log", absent=Failed) as process:
        yield json.loads(file.read_text())
        if process.poll() is not None:
            raise Failed(f"the relay ended with {process.returncode}")
    if process.returncode != 0:
        raise Failed(f"the relay ended with {process.returncode} when asked to stop")


def guide_block(language, *changes):
    """The first code block of that language in the operator's guide, each change made exactly once.

    So what runs here is what the guide shows, but for ports and certificates.
    """
    text = (ROOT / "docs" / "guides" / "zulip.md").read_text()
    found = re.search(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise Failed(f"the guide shows no {language} any more")
    block = found.group(1)
    for old, new in changes:
        if block.count(old) != 1:
            raise Failed(f"the guide's {language} has {old!r} {block.count(old)} times")
        block = block.replace(old, new)
    return block
