"""Rows in which foreign HTTP/2 servers stand where Apple and Google stand."""
import collections
import json
import re
import secrets
import subprocess
import sys
import time

from tools import BENCH, HERE, Failed, answers, certificates, free_port, need, need_modules, running, version

REQUESTS = 5000
DEADLINE_SECONDS = 240
# nginx says GOAWAY after so many requests of a connection; on purpose far below its usual 1,000.
NGINX_KEEPALIVE_REQUESTS = 100


def send(port, folder, service="apns", connections=2, streams=100, body_bytes=400):
    """Drives our sender against a sink; what it reported, which must be all accepted."""
    (folder / "tokens").write_text("".join(secrets.token_hex(32) + "\n" for _ in range(REQUESTS)))
    command = [BENCH, "sender", "--host", "127.0.0.1", "--port", str(port), "--ca", str(folder / "ca.pem"),
               "--requests", str(REQUESTS), "--connections", str(connections), "--streams", str(streams),
               "--service", service, "--body-bytes", str(body_bytes), "--tokens", str(folder / "tokens"), "--json"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as late:
        raise Failed(f"the sender had not ended after {DEADLINE_SECONDS} s") from late
    if told.returncode not in (0, 1) or not told.stdout.startswith("{"):
        raise Failed(f"the sender ended with {told.returncode}: {told.stderr.strip()[-200:]}")
    report = json.loads(told.stdout)
    if report["accepted"] != REQUESTS or report["failed"] or told.returncode:
        raise Failed(f"{report['accepted']} of {REQUESTS} accepted, {report['failed']} failed, "
                     f"first fault {report.get('first_fault')}")
    return report


def counted(distinct, total, report):
    """Compares what the sink saw with what was sent."""
    if distinct != REQUESTS:
        raise Failed(f"{REQUESTS - distinct} of {REQUESTS} never reached the sink")
    if total - distinct > report["resent_unknown"]:
        raise Failed(f"{total - distinct} doubled, {report['resent_unknown']} were resent with unknown fate")
    return f"{REQUESTS} sent, 0 lost, {total - distinct} doubled"


def nginx(folder):
    need("nginx", "openssl")
    certificates(folder)
    port = free_port()
    text = (HERE / "nginx.conf").read_text().replace("@PORT@", str(port))
    (folder / "nginx.conf").write_text(text.replace("@REQUESTS@", str(NGINX_KEEPALIVE_REQUESTS)))
    command = ["nginx", "-p", str(folder), "-e", "error.log", "-c", str(folder / "nginx.conf")]
    with running(command, folder, answers(port)):
        report = send(port, folder)
        ends = time.monotonic() + 5
        # nginx writes its log a little after the answer has left.
        while len(lines := (folder / "access.log").read_text().split("\n")[:-1]) < REQUESTS:
            if time.monotonic() > ends:
                break
            time.sleep(0.1)
    ids = collections.Counter(line.split()[0] for line in lines)
    if any(line.split()[1] != "200" for line in lines):
        raise Failed("nginx answered another status than 200")
    note = counted(len(ids), sum(ids.values()), report)
    # Half of what must come, for a connection that stands at the end has not used up its hundred.
    if report["goaways"] < REQUESTS // NGINX_KEEPALIVE_REQUESTS // 2:
        raise Failed(f"only {report['goaways']} GOAWAYs came")
    return ("nginx " + version(["nginx", "-v"], r"nginx/(\S+)"),
            f"{note}, {report['goaways']} GOAWAYs, each answer before the body was read")


def nghttpd(folder):
    need("nghttpd", "openssl")
    certificates(folder)
    port = free_port()
    command = ["nghttpd", "-v", "-n", "1", "-m", "100", "--echo-upload", "-a", "127.0.0.1", str(port),
               "leaf.key", "leaf.pem"]
    with running(command, folder, answers(port)):
        report = send(port, folder)
    said = (folder / "server.log").read_text(errors="replace")
    ids = collections.Counter(re.findall(r"recv \(stream_id=\d+, sensitive\) apns-id: (\S+)", said))
    # The first of a connection plants the field's name, and is told without the mark.
    ids.update(re.findall(r"recv \(stream_id=\d+\) apns-id: (\S+)", said))
    # nghttpd writes "sensitive" beside a field that no hop may index.
    unmarked = re.findall(r"recv \(stream_id=\d+\) (?:authorization|:path):", said)
    marked = re.findall(r"recv \(stream_id=\d+, sensitive\) (?:authorization|:path):", said)
    if unmarked or len(marked) < 2 * REQUESTS:
        raise Failed(f"{len(unmarked)} secrets without the never-indexed mark, {len(marked)} with it")
    return ("nghttpd " + version(["nghttpd", "--version"], r"nghttp2/(\S+)"),
            counted(len(ids), sum(ids.values()), report))


def h2_sink(service, *options, body_bytes=400, proves=()):
    """A row. `proves` names counts of the sink that must not be 0, else the row would show nothing."""
    def row(folder):
        need("openssl")
        need_modules("h2")
        certificates(folder)
        command = [sys.executable, str(HERE / "h2_sink.py"), "--cert", "leaf.pem", "--key", "leaf.key", "--ready",
                   "ready", "--report", "report.json", "--service", service, *options]
        ready = folder / "ready"
        with running(command, folder, ready.exists):
            report = send(int(ready.read_text()), folder, service, body_bytes=body_bytes)
        if not (folder / "report.json").exists():
            raise Failed("the sink failed: " + (folder / "server.log").read_text()[-300:])
        seen = json.loads((folder / "report.json").read_text())
        if seen["faults"]:
            raise Failed("; ".join(f"{name} ({count})" for name, count in seen["faults"].items()))
        note = counted(seen["distinct"], seen["requests"], report)
        for name in proves:
            if not seen[name]:
                raise Failed(f"nothing was shown: {name} is 0")
        if "--credit-after" in options and seen["least_window"] > 1000:
            raise Failed(f"the window was never used up: {seen['least_window']} bytes were left")
        shown = [f"{seen[name]} {name.replace('_', ' ')}" for name in ("connections", *proves)]
        return None, ", ".join([note, *shown])
    return row


NARROW = ("--windows", "65535,1000,30000", "--credit-after", "20")
ROWS = [("nginx as push service", nginx), ("nghttpd as push service", nghttpd)]
for _service in ("apns", "fcm"):
    _name = "h2 as " + {"apns": "APNs", "fcm": "FCM"}[_service]
    ROWS += [
        (_name, h2_sink(_service, proves=("pongs",))),
        (f"{_name}, GOAWAY that drops", h2_sink(_service, "--goaway-every", "300", "--goaway", "drop",
                                                proves=("goaways", "dropped"))),
        (f"{_name}, GOAWAY in two steps", h2_sink(_service, "--goaway-every", "300", "--goaway", "grace",
                                                  proves=("goaways",))),
        (f"{_name}, streams 100, 1, 20", h2_sink(_service, "--limits", "100,1,20", "--goaway-every", "500",
                                                 proves=("goaways", "limits_changed"))),
        (f"{_name}, narrow windows", h2_sink(_service, *NARROW, body_bytes=3900, proves=("limits_changed",))),
        (f"{_name}, no header table", h2_sink(_service, "--header-table", "0")),
    ]
ROWS.append(("h2 as APNs, early answers", h2_sink("apns", "--windows", "1000", "--early-every", "3", body_bytes=3900,
                                                  proves=("early",))))
