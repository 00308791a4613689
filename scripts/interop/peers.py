"""Runs the foreign peers and prints one row for each. See `run`, which prepares what this needs.

Usage: peers.py [NAME …]     only the rows whose name contains one of the words
"""
import collections
import contextlib
import importlib.util
import json
import os
import pathlib
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SEALBELL = os.environ["SEALBELL_BIN"]
REQUESTS = 5000
DEADLINE_SECONDS = 120


class NotRunnable(Exception):
    """The peer cannot be had here; the text says why."""


class Failed(Exception):
    """The peer and we do not agree; the text says on what."""


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


def certificates(folder):
    """A CA and a leaf for 127.0.0.1 and localhost, made on the spot."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=interop CA")
    openssl("req", *key, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", "/CN=localhost")
    (folder / "leaf.ext").write_text(
        "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n")
    openssl("x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "leaf.ext", "-out", "leaf.pem")


@contextlib.contextmanager
def server(command, port, folder):
    """Starts a server, waits until its port answers, and ends it by its own process id."""
    log = open(folder / "server.log", "wb")
    process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        ends = time.monotonic() + 20
        while True:
            if process.poll() is not None:
                raise NotRunnable(f"{command[0]} ended at once: " + (folder / "server.log").read_text()[-200:])
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if time.monotonic() > ends:
                raise NotRunnable(f"{command[0]} does not answer")
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
        log.close()


def send(port, folder, connections=2, streams=100, service="apns"):
    """Drives our sender against a sink; what it reported, which must be all accepted."""
    command = [SEALBELL, "bench", "sender", "--host", "127.0.0.1", "--port", str(port), "--ca", str(folder / "ca.pem"),
               "--requests", str(REQUESTS), "--connections", str(connections), "--streams", str(streams),
               "--service", service, "--json"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as late:
        raise Failed(f"the sender had not ended after {DEADLINE_SECONDS} s") from late
    lines = [line for line in told.stdout.splitlines() if line.startswith("{")]
    if told.returncode != 0 or not lines:
        raise Failed(f"the sender ended with {told.returncode}: {told.stderr.strip()[-200:]}")
    report = json.loads(lines[-1] if lines[-1].endswith("}") else told.stdout[told.stdout.index("{"):])
    if report["accepted"] != REQUESTS or report["failed"]:
        raise Failed(f"{report['accepted']} of {REQUESTS} accepted, {report['failed']} failed")
    return report


def counted(ids, report):
    """Compares what the sink saw with what was sent."""
    doubled = sum(ids.values()) - len(ids)
    if len(ids) != REQUESTS:
        raise Failed(f"{REQUESTS - len(ids)} of {REQUESTS} never reached the sink")
    if doubled > report["resent_unknown"]:
        raise Failed(f"{doubled} doubled, {report['resent_unknown']} were resent with unknown fate")
    return f"{REQUESTS} sent, 0 lost, {doubled} doubled"


def nginx(folder):
    need("nginx", "openssl")
    certificates(folder)
    port = free_port()
    text = (HERE / "nginx.conf").read_text().replace("@PORT@", str(port))
    (folder / "nginx.conf").write_text(text)
    command = ["nginx", "-p", str(folder), "-e", "error.log", "-c", str(folder / "nginx.conf")]
    with server(command, port, folder):
        report = send(port, folder)
        time.sleep(1.2)  # nginx writes its buffered log once a second
    ids = collections.Counter((folder / "access.log").read_text().split())
    return "nginx " + version(["nginx", "-v"], r"nginx/(\S+)"), counted(ids, report)


def nghttpd(folder):
    need("nghttpd", "openssl")
    certificates(folder)
    port = free_port()
    command = ["nghttpd", "-n", "1", "-m", "100", "--echo-upload", "-a", "127.0.0.1", str(port), "leaf.key", "leaf.pem"]
    with server(command, port, folder):
        report = send(port, folder)
    return "nghttpd " + version(["nghttpd", "--version"], r"nghttp2/(\S+)"), f"{report['accepted']} of {REQUESTS} accepted"


def h2_sink(folder, service, *options):
    need("openssl")
    need_modules("h2")
    certificates(folder)
    command = [sys.executable, str(HERE / "h2_sink.py"), "--cert", "leaf.pem", "--key", "leaf.key", "--ready", "ready",
               "--report", "report.json", "--service", service, *options]
    log = open(folder / "server.log", "wb")
    process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        ends = time.monotonic() + 20
        while not (folder / "ready").exists():
            if process.poll() is not None or time.monotonic() > ends:
                raise NotRunnable("the sink did not start: " + (folder / "server.log").read_text()[-200:])
            time.sleep(0.05)
        report = send(int((folder / "ready").read_text()), folder, service=service)
    finally:
        process.terminate()
        process.wait(10)
        log.close()
    seen = json.loads((folder / "report.json").read_text())
    if seen["faults"]:
        raise Failed("; ".join(f"{name} ({count})" for name, count in seen["faults"].items()))
    if service == "apns" and seen["distinct"] != REQUESTS:
        raise Failed(f"{REQUESTS - seen['distinct']} of {REQUESTS} never reached the sink")
    if seen["doubled"] > report["resent_unknown"]:
        raise Failed(f"{seen['doubled']} doubled, {report['resent_unknown']} were resent with unknown fate")
    return (f"{seen['requests']} judged, {seen['doubled']} doubled, {seen['goaways']} GOAWAYs, "
            f"{seen['connections']} connections, at most {seen['most_streams']} streams")


def h2_apns(folder):
    return "h2 as APNs", h2_sink(folder, "apns")


def h2_goaway(folder):
    return "h2 as APNs, GOAWAY", h2_sink(folder, "apns", "--goaway-every", "300", "--limits", "100,1,20")


def h2_fcm(folder):
    return "h2 as FCM", h2_sink(folder, "fcm")


def pynacl(folder):
    need_modules("nacl", "cryptography")
    seed = secrets.token_hex(8)
    made = subprocess.run([sys.executable, str(HERE / "vectors_zulip.py"), "--seed", seed, "--set", "interop", "--out",
                           str(folder / "zulip.json")], capture_output=True, text=True)
    if made.returncode:
        raise NotRunnable("the generator failed: " + made.stderr.strip()[-200:])
    # Our tests open what PyNaCl sealed, and seal again to compare byte for byte.
    told = subprocess.run(["swift", "test", "--skip-build", "--filter", "Vector"], cwd=ROOT, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=600,
                          env={**os.environ, "SEALBELL_VECTORS": str(folder)})
    text = told.stdout + told.stderr
    rows = re.findall(r"vectors zulip/interop (\S+) (\d+)/(\d+)", text)
    if told.returncode:
        keep = ROOT / ".build" / f"interop-{seed}.json"
        shutil.copy(folder / "zulip.json", keep)
        raise Failed(f"seed {seed}, kept as .build/{keep.name}; " + text.strip().splitlines()[-1])
    if not rows:
        raise Failed("no vector ran")
    cases = sum(int(row[1]) for row in rows)
    return "PyNaCl, sealing", f"seed {seed}: {cases} cases in {len(rows)} sections"


ROWS = [("PyNaCl, sealing", pynacl), ("nginx", nginx), ("nghttpd", nghttpd), ("h2 as APNs", h2_apns),
        ("h2 as APNs, GOAWAY", h2_goaway), ("h2 as FCM", h2_fcm)]


def main():
    wanted = [word.lower() for word in sys.argv[1:]]
    failed = False
    for title, peer in ROWS:
        if wanted and not any(word in title.lower() for word in wanted):
            continue
        with tempfile.TemporaryDirectory(prefix="interop-") as folder:
            try:
                title, note = peer(pathlib.Path(folder))
                verdict = "passed"
            except NotRunnable as why:
                verdict, note = "not runnable here", str(why)
            except Failed as why:
                verdict, note, failed = "failed", str(why), True
        print(f"{title:<20} {verdict:<18} {' '.join(note.split())}", flush=True)
    sys.exit(1 if failed else 0)


main()
