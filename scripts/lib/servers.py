"""Foreign servers for measurements and interoperability: ports, certificates, start and end."""
import contextlib
import socket
import subprocess
import time

START_SECONDS = 20
STOP_SECONDS = 10


class NotServing(Exception):
    """The server does not run here; the text says why."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def certificates(folder):
    """A CA and a leaf for 127.0.0.1 and localhost, made on the spot: ca.pem, leaf.pem, leaf.key."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test CA")
    openssl("req", *key, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", "/CN=localhost")
    (folder / "leaf.ext").write_text(
        "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n")
    openssl("x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "leaf.ext", "-out", "leaf.pem")


@contextlib.contextmanager
def server(command, port, folder):
    """Starts a server, waits until its port answers, and ends it by its own process id.

    Raises NotServing when it ends before, or does not answer.
    """
    path = folder / "server.log"
    with open(path, "ab") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            ends = time.monotonic() + START_SECONDS
            while True:
                if process.poll() is not None:
                    raise NotServing(f"{command[0]} ended at once: " + path.read_text()[-300:])
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                if time.monotonic() > ends:
                    raise NotServing(f"{command[0]} does not answer")
                time.sleep(0.05)
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
