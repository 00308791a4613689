"""A row in which curl, a client that nobody here wrote, speaks HTTP/1.1 in all the ways it can."""
import json
import pathlib
import re
import secrets
import subprocess
import time
import uuid

from tools import Failed, expect, need, relay, version

REGISTER = "/api/v1/remotes/server/register"
NOTIFY = "/api/v1/remotes/push/e2ee/notify"
ANALYTICS = "/api/v1/remotes/server/analytics"


class Curl:
    """Runs curl, and takes what it says of the exchange apart."""

    def __init__(self, folder, base):
        self.folder, self.base = folder, base
        self.id, self.key = str(uuid.uuid4()), secrets.token_hex(32)
        self.calls = 0

    def __call__(self, *arguments, paths=(REGISTER,)):
        """Statuses and bodies, one for each path, and the trace of the exchange."""
        command = ["curl", "--silent", "--show-error", "--verbose", "--noproxy", "*", "--max-time", "20"]
        for index, path in enumerate(paths):
            command += ["--output", str(self.folder / f"body{index}"), "--write-out", "%{http_code}\n", *arguments,
                        self.base + path]
            if index + 1 < len(paths):
                command += ["--next", "--silent", "--show-error", "--verbose", "--noproxy", "*"]
        told = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        if told.returncode:
            raise Failed(f"curl ended with {told.returncode}: {told.stderr.strip()[-200:]}")
        self.calls += len(paths)
        bodies = [pathlib.Path(self.folder / f"body{index}") for index in range(len(paths))]
        texts = [body.read_text() if body.exists() else "" for body in bodies]
        return [int(line) for line in told.stdout.split()], texts, told.stderr

    def sign_up(self):
        return ["--data-urlencode", f"zulip_org_id={self.id}", "--data-urlencode", f"zulip_org_key={self.key}",
                "--data-urlencode", "hostname=curl.example.org", "--data-urlencode", "contact_email=a@acme.test"]

    def file(self, name, text):
        (self.folder / name).write_text(text)
        return f"@{self.folder / name}"


def curl(folder):
    need("curl")
    with relay(folder) as run:
        call = Curl(folder, run["urls"]["public"])
        [status], [body], _ = call(*call.sign_up())
        expect((status, json.loads(body).get("created")), (200, True), "a form")
        user = ["--user", f"{call.id}:{call.key}"]
        continues(call, user)
        framing(call, user)
        connections(call, user)
        refused_before_body(call, user)
    return "curl " + version(["curl", "--version"], r"curl (\S+)"), f"{call.calls} calls: 100-continue, chunked, " \
        "HTTP/1.0, keep-alive, h2c upgrade, HEAD, oversize"


def continues(call, user):
    """A body that waits to be asked for arrives (RFC 9110 §10.1.1)."""
    rows = json.dumps([{"id": number, "value": "x" * 100} for number in range(1, 20_000)])
    form = call.file("rows", rows)
    arguments = [*user, "--header", "Expect: 100-continue", "--expect100-timeout", "15", "--data-urlencode",
                 f"realm_counts{form}", "--data", "installation_counts=%5B%5D"]
    begun = time.monotonic()
    [status], _, trace = call(*arguments, paths=(ANALYTICS,))
    expect(status, 200, "2 MB behind Expect: 100-continue")
    if "< HTTP/1.1 100 Continue" not in trace:
        raise Failed("no 100 Continue came")
    # Without it curl would have waited for its own 15 seconds, and sent all the same.
    if time.monotonic() - begun > 14:
        raise Failed("100 Continue came too late")


def framing(call, user):
    body = call.file("notify", json.dumps({"realm_uuid": str(uuid.uuid4()), "push_requests": []}))
    for name, extra in (("chunked", ["--header", "Transfer-Encoding: chunked"]), ("by length", []),
                        ("chunked behind 100-continue", ["--header", "Transfer-Encoding: chunked", "--header",
                                                          "Expect: 100-continue"])):
        [status], [answer], trace = call(*user, "--header", "Content-Type: application/json", *extra, "--data-binary",
                                         body, paths=(NOTIFY,))
        expect((status, json.loads(answer)["code"]), (403, "MISSING_REMOTE_REALM"), name)
        expect("> Transfer-Encoding: chunked" in trace, "chunked" in name, name)
    [status], [answer], trace = call(*user, "--http1.0", "--data-binary", body, paths=(NOTIFY,))
    expect((status, json.loads(answer)["code"]), (403, "MISSING_REMOTE_REALM"), "HTTP/1.0")
    if not re.search(r"^< connection: close", trace, re.MULTILINE | re.IGNORECASE):
        raise Failed("an HTTP/1.0 connection stays open without having been asked")


def connections(call, user):
    paths = ("/api/v1/remotes/server/analytics/status",) * 3
    statuses, _, trace = call(*user, paths=paths)
    expect(statuses, [200] * 3, "three calls")
    expect(trace.count("Re-using existing connection"), 2, "connections used again")
    # curl offers an upgrade to HTTP/2 in clear; who does not take it answers as if nothing had been said.
    statuses, _, trace = call(*user, "--http2", paths=paths[:1])
    expect((statuses, "101" in re.findall(r"^< HTTP/1.1 (\d+)", trace, re.MULTILINE)), ([200], False), "h2c")
    [status], _, trace = call(*user, "--head", paths=paths[:1])
    # As Django has it: whoever answers GET answers HEAD.
    expect(status, 200, "HEAD")
    if not re.search(r"^< content-length: [1-9]", trace, re.MULTILINE | re.IGNORECASE):
        raise Failed("HEAD is not answered with the length that GET would have")


def refused_before_body(call, user):
    """Who asks before sending too much is told so, and sends nothing."""
    large = call.file("large", "a" * (5 << 20))
    for extra in (["--header", "Expect: 100-continue"], ["--header", "Expect:"],
                  ["--header", "Expect:", "--header", "Transfer-Encoding: chunked"]):
        [status], [answer], trace = call(*user, *extra, "--data-binary", large, paths=(NOTIFY,))
        expect((status, json.loads(answer)["result"]), (400, "error"), f"5 MiB with {extra}")
        if extra == ["--header", "Expect: 100-continue"] and "100 Continue" in trace:
            raise Failed("the relay asked for a body that it then refused")


ROWS = [("curl as client", curl)]
