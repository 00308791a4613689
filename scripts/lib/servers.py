"""Servers that scripts start: ports, certificates, start, readiness and end."""
import contextlib
import os
import pathlib
import socket
import subprocess
import time

READY_SECONDS = 30
END_SECONDS = 20


class NotServing(Exception):
    """The server does not run here; the text says why."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def certificates(folder, *names):
    """A CA and a leaf for 127.0.0.1, localhost and further names, made on the spot."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test CA")
    openssl("req", *key, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", "/CN=localhost")
    subjects = ",".join(["DNS:localhost", "IP:127.0.0.1", *("DNS:" + name for name in names)])
    (folder / "leaf.ext").write_text(
        f"subjectAltName={subjects}\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n")
    openssl("x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "leaf.ext", "-out", "leaf.pem")


@contextlib.contextmanager
def running(command, folder, is_ready, log_name="server.log", environment=None, absent=NotServing):
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
