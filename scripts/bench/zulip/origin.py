#!/usr/bin/env python3
"""An origin and its relay, two processes beside simulated push services: what they reach, and what they take.

    SEALBELL_BIN=… .venv/bin/python scripts/bench/zulip/origin.py [rates] [memory] [polls] [rush] [SECONDS=10]

rates   notifications a second from `POST /notify` (wrk) to acceptance by the push services: of users with one device,
        and of users with ten.
memory  what the origin holds at rest with 10,000 users of two devices.
polls   what 4,000 waiting polls add.
rush    10,000 users register a phone at once, over 256 connections.

Needs PyNaCl, and wrk (Debian) for the rates. One line of JSON for each.
"""
import asyncio
import base64
import json
import os
import pathlib
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

from nacl.public import PrivateKey, PublicKey, SealedBox

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
PROGRAM = os.environ.get("SEALBELL_BIN", str(ROOT / ".build/debug/sealbell"))
TOKEN = "application-token-of-a-bench"
ORIGIN, ADMIN = 18490, 18491
WORDS = [word for word in sys.argv[1:] if "=" not in word] or ["rates", "memory", "polls", "rush"]
SETTINGS = dict(word.split("=") for word in sys.argv[1:] if "=" in word)
SECONDS = int(SETTINGS.get("SECONDS", 10))
USERS = int(SETTINGS.get("USERS", 10_000))


class Connection:
    """HTTP/1.1 over one kept connection; enough of it for this bench."""

    def __init__(self, port):
        self.port, self.reader, self.writer = port, None, None
        # As behind a proxy: each connection is another client's, who has a share of the listener.
        self.client = "X-Bench: 1" if port != ORIGIN else f"X-Forwarded-For: 198.{secrets.randbelow(256)}.{secrets.randbelow(256)}.{secrets.randbelow(256)}"

    async def ask(self, method, path, body=b"", headers=()):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}", self.client, *headers]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        told = await self.reader.readexactly(int(length[1])) if length else b""
        return int(head.split(b" ", 2)[1]), told

    def close(self):
        if self.writer:
            self.writer.close()


def basic(user, key):
    return "Authorization: Basic " + base64.b64encode(f"{user}:{key}".encode()).decode()


FORM = "Content-Type: application/x-www-form-urlencoded"


def registration(bouncer_key, kind):
    """A registration in the specification's own form, for a token that the simulators have learnt."""
    token = secrets.token_hex(32) if kind == "apns" else \
        secrets.token_urlsafe(16) + ":APA91b" + secrets.token_urlsafe(100)
    plain = {"token_kind": kind, "token": token, "timestamp": int(time.time())}
    if kind == "apns":
        plain["ios_app_id"] = "org.example.sandbox"
    sealed = SealedBox(PublicKey(base64.b64decode(bouncer_key))).encrypt(json.dumps(plain).encode())
    return urllib.parse.urlencode({
        "push_account_id": str(secrets.randbelow(2**63 - 1) + 1), "token_kind": kind,
        "encrypted_push_registration": base64.b64encode(sealed).decode(), "bouncer_public_key": bouncer_key,
        "push_public_key": base64.b64encode(bytes(PrivateKey.generate().public_key)).decode()}).encode()


async def spread(jobs, width):
    """Runs jobs over so many connections; each job is a function of a connection."""
    queue = list(reversed(jobs))

    async def work(connection):
        while queue:
            await queue.pop()(connection)
        connection.close()

    await asyncio.gather(*(work(Connection(ORIGIN)) for _ in range(width)))


class Pair:
    """A relay and an origin, fresh."""

    def __init__(self, folder):
        self.folder = folder
        limits = "limits.pushes_per_minute=0"
        self.relay = self.start("relay", "serve", "--sandbox", "--state", "relay", "--set", limits)
        run = self.file("relay/run.json")
        self.key = run["public_keys"]["zulip-main"][0]
        self.urls = run["urls"]
        (folder / "token").write_text(TOKEN)
        (folder / "token").chmod(0o600)
        (folder / "origin.yaml").write_text(
            "store: { keys: origin.keys }\n"
            f"origin: {{ url: 'http://127.0.0.1:{ORIGIN}', contact: admin@origin.test, application_token_file: token, "
            f"relay: {{ url: '{run['urls']['public']}' }}, limits: {{ notify_per_minute: 10000000 }} }}\n"
            f"listeners: {{ origin: {{ bind: '127.0.0.1:{ORIGIN}', trusted_proxies: ['127.0.0.1'] }}, admin: {{ bind: '127.0.0.1:{ADMIN}' }} }}\n")
        self.begin()
        for words in (["sign-up"], ["realm", "add", "bench"]):
            subprocess.run([PROGRAM, "origin", *words, "--at", "origin"], cwd=folder, check=True, capture_output=True)
        self.users = []

    def begin(self):
        self.origin = self.start("origin", "origin", "--config", "origin.yaml", "--state", "origin")
        self.file("origin/run.json")

    def restart(self):
        self.origin.send_signal(signal.SIGTERM)
        self.origin.wait(60)
        self.begin()

    def start(self, name, *arguments):
        log = open(self.folder / f"{name}.log", "ab")
        return subprocess.Popen([PROGRAM, *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def file(self, name):
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            try:
                return json.loads((self.folder / name).read_text())
            except (OSError, ValueError):
                time.sleep(0.05)
        raise SystemExit(f"origin.py: no {name}")

    def stop(self):
        for process in (self.origin, self.relay):
            process.send_signal(signal.SIGTERM)
            process.wait(60)

    async def add_users(self, count):
        connection = Connection(ADMIN)
        for number in range(len(self.users), len(self.users) + count):
            name = f"user{number}@bench.test"
            status, told = await connection.ask(
                "POST", "/origin/users/add", json.dumps({"name": name}).encode(), ["Content-Type: application/json"])
            assert status == 200, told
            self.users.append((name, json.loads(told)["key"]))
        connection.close()

    async def register(self, users, devices, width=64):
        """So many phones for each of them. Returns how long each call took, in seconds."""
        forms = [(user, registration(self.key, "apns" if number % 2 else "fcm"))
                 for number in range(devices) for user in users]
        spans = []

        def job(user, form):
            async def work(connection):
                begun = time.perf_counter()
                while True:
                    status, told = await connection.ask(
                        "POST", "/api/v1/mobile_push/register", form, [basic(*user), FORM])
                    if status == 200:
                        break
                    assert status in (429, 503), (status, told)
                    await asyncio.sleep(0.5)
                spans.append(time.perf_counter() - begun)
            return work

        await spread([job(user, form) for user, form in forms], width)
        return spans

    async def counts(self):
        connection = Connection(ADMIN)
        _, told = await connection.ask("GET", "/origin/status")
        connection.close()
        found = {}
        for each in json.loads(told)["devices"]:
            found[each["state"]] = found.get(each["state"], 0) + each["count"]
        return found

    async def active(self, count):
        begun = time.perf_counter()
        while (await self.counts()).get("active", 0) < count:
            await asyncio.sleep(0.25)
            assert time.perf_counter() - begun < 600, await self.counts()
        return time.perf_counter() - begun

    async def accepted(self):
        port = urllib.parse.urlsplit(self.urls["sandbox-control"]).port
        total, connection = 0, Connection(port)
        for service in ("production", "fcm"):
            _, told = await connection.ask("GET", f"/{service}/counters")
            total += json.loads(told).get("accepted", 0)
        connection.close()
        return total

    def resident(self):
        status = pathlib.Path(f"/proc/{self.origin.pid}/status").read_text()
        number = lambda name: int(re.search(rf"{name}:\s+(\d+)", status)[1]) / 1024
        return {"resident_mib": round(number("VmRSS"), 1), "anonymous_mib": round(number("RssAnon"), 1)}

    def cpu(self):
        def seconds(process):
            fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return {"origin": seconds(self.origin), "relay": seconds(self.relay)}


def drive(users):
    script = pathlib.Path("drive.lua")
    script.write_text(
        f'local n = {len(users)}\nlocal i = 0\n'
        'request = function()\n  i = (i + 1) % n\n'
        '  return wrk.format("POST", "/notify", {["Authorization"]="Bearer ' + TOKEN + '",'
        '["Content-Type"]="application/json"}, \'{"user":"user\' .. i .. \'@bench.test","content":"Dinner is ready"}\')\n'
        'end\n')
    told = subprocess.run(
        ["wrk", "-t1", "-c64", f"-d{SECONDS}s", "--latency", "-s", str(script), f"http://127.0.0.1:{ORIGIN}"],
        capture_output=True, text=True, check=True).stdout
    requests = int(re.search(r"(\d+) requests in", told)[1])
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", told)
    return requests, int(failed[1]) if failed else 0, re.search(r"99%\s+(\S+)", told)[1]


async def rates(folder):
    for devices in (1, 10):
        pair = Pair(folder(f"rates{devices}"))
        try:
            await pair.add_users(200)
            await pair.register(pair.users, devices)
            await pair.active(200 * devices)
            before, cpu, begun = await pair.accepted(), pair.cpu(), time.perf_counter()
            requests, failed, slowest = await asyncio.to_thread(drive, pair.users)
            wanted = (requests - failed) * devices
            at_end = await pair.accepted() - before
            driven = time.perf_counter() - begun
            while await pair.accepted() - before < wanted and time.perf_counter() - begun < 120:
                await asyncio.sleep(0.1)
            span, arrived = time.perf_counter() - begun, await pair.accepted() - before
            used = {name: round((spent - cpu[name]) * 1e6 / max(arrived, 1)) for name, spent in pair.cpu().items()}
            print(json.dumps({
                "what": "rates", "devices": devices, "notifications": requests - failed, "refused": failed,
                "pushes": arrived, "seconds": round(span, 1), "pushes_a_second": round(arrived / span),
                "pushes_a_second_while_driven": round(at_end / driven), "notify_p99": slowest,
                "cpu_us_a_push": used, **pair.resident()}), flush=True)
        finally:
            pair.stop()


async def crowd(folder, words):
    pair = Pair(folder("crowd"))
    try:
        empty = pair.resident()
        await pair.add_users(USERS)
        if "rush" in words:
            begun = time.perf_counter()
            spans = sorted(await pair.register(pair.users, 1, width=256))
            answered = time.perf_counter() - begun
            await pair.active(USERS)
            print(json.dumps({
                "what": "rush", "registrations": len(spans), "answered_in_s": round(answered, 1),
                "p50_ms": round(spans[len(spans) // 2] * 1e3, 1), "p99_ms": round(spans[len(spans) * 99 // 100] * 1e3, 1),
                "confirmed_in_s": round(time.perf_counter() - begun, 1), "states": await pair.counts()}), flush=True)
        missing = 2 * USERS - sum((await pair.counts()).values())
        if missing:
            await pair.register(pair.users, missing // USERS)
            await pair.active(2 * USERS)
        await asyncio.sleep(60)
        rest = pair.resident()
        pair.restart()
        await asyncio.sleep(10)
        again = pair.resident()
        await pair.active(2 * USERS)
        print(json.dumps({
            "what": "memory", "users": USERS, "devices": 2 * USERS, "empty": empty, "after_all_registered": rest,
            "after_a_restart": again}), flush=True)
        rest = again
        if "polls" in words:
            held = []
            for user in pair.users[:4_000]:
                connection = Connection(ORIGIN)
                status, told = await connection.ask("POST", "/api/v1/register", b"", [basic(*user), FORM])
                assert status == 200, told
                queue = json.loads(told)
                path = f"/api/v1/events?queue_id={queue['queue_id']}&last_event_id={queue['last_event_id']}"
                held.append((connection, asyncio.create_task(connection.ask("GET", path, b"", [basic(*user)]))))
                if len(held) % 200 == 0:
                    await asyncio.sleep(0.1)
            most, full = 0, pair.resident()
            for _ in range(10):
                connection = Connection(ADMIN)
                most = max(most, json.loads((await connection.ask("GET", "/origin/status"))[1])["waiting_polls"])
                connection.close()
                full = max(full, pair.resident(), key=lambda one: one["resident_mib"])
                await asyncio.sleep(0.5)
            print(json.dumps({
                "what": "polls", "opened": len(held), "waiting": most, **full,
                "more_mib": round(full["resident_mib"] - rest["resident_mib"], 1)}), flush=True)
            for connection, task in held:
                task.cancel()
                connection.close()
    finally:
        pair.stop()


async def main():
    with tempfile.TemporaryDirectory(prefix="sealbell-origin-") as root:
        os.chdir(root)

        def folder(name):
            place = pathlib.Path(root) / name
            place.mkdir()
            return place

        if "rates" in WORDS:
            await rates(folder)
        if {"memory", "polls", "rush"} & set(WORDS):
            await crowd(folder, WORDS)


asyncio.run(main())
