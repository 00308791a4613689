#!/usr/bin/env python3
"""How long the relay takes for a page of stale ids, among a million rows of ten realms.

    SEALBELL_BIN=… .venv/bin/python scripts/bench/zulip/stale.py [sqlite|postgres …]

Ten servers sign up, and a phone of each dies. Between two runs of the relay its row is copied, under other keys and
numbers: half of the copies are stale, a quarter died yesterday, a quarter live. Then every page of every realm is
asked for once over HTTP, with 1,000 ids a page.
"""
import contextlib
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
for folder in ("interop", "lib"):
    sys.path.insert(0, str(HERE.parent.parent / folder))
import postgres
from tools import SEALBELL, relay
from zulip.conversation import message
from zulip.zulip_forms import AccountPhone, FormsServer
from zulip.zulip_peer import Door, Services

ROWS, REALMS, PAGE = 1_000_000, 10, 1_000
DAY_MS = 86_400_000
CLEAR = "space, owner, version, state, state_at, touched_at, expires_at"
SQLITE = f"""
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {ROWS // REALMS})
INSERT INTO records (key, address, revision, body, {CLEAR})
SELECT randomblob(16), randomblob(16), r.revision, x'', r.space, r.owner, CAST(x'01' || randomblob(7) AS BLOB),
    n.i % 4 != 3,
    CASE n.i % 4 WHEN 3 THEN 0 WHEN 2 THEN r.state_at - {DAY_MS} ELSE r.state_at - 20 * {DAY_MS} END,
    r.touched_at, r.expires_at
FROM (SELECT * FROM records WHERE state = 1) r, n"""
POSTGRES = f"""
INSERT INTO records (key, address, revision, body, {CLEAR})
SELECT gen_random_uuid(), gen_random_uuid(), r.revision, ''::bytea, r.space, r.owner,
    '-9223372036854775807'::int8 + (random() * 9e18)::int8, CASE n.i % 4 WHEN 3 THEN 0 ELSE 1 END,
    CASE n.i % 4 WHEN 3 THEN 0 WHEN 2 THEN r.state_at - {DAY_MS} ELSE r.state_at - 20::int8 * {DAY_MS} END,
    r.touched_at, r.expires_at
FROM (SELECT * FROM records WHERE state = 1) r, generate_series(0, {ROWS // REALMS - 1}) n(i)"""


def servers(run):
    """Ten of them, each with a phone that its service has refused."""
    found = []
    for number in range(REALMS):
        server = FormsServer(Door(run["urls"]["public"]), run["public_keys"]["zulip-main"][0], f"r{number}.example.org")
        phone = AccountPhone("fcm", number + 1, "zap")
        for answer in (server.sign_up(), server.analytics(), server.join(phone)):
            answer.raise_for_status()
        phone.device_id = answer.json()["device_id"]
        Services(run["urls"]["sandbox-control"]).set_device("fcm", phone, "removed")
        told = server.notify([server.account_item(phone, message(1, "x"))]).json()
        assert told["delete_device_ids"] == [phone.device_id], told
        found.append(server)
    return found


def pages(server):
    after, spans, seen = 0, [], 0
    while after is not None:
        begun = time.perf_counter()
        answer = server.stale(realm_uuid=server.realm, after=after, limit=PAGE)
        spans.append((time.perf_counter() - begun) * 1e3)
        told = answer.json()
        seen, after = seen + len(told["device_ids"]), told["next_after"]
    return spans[:-1], seen  # The last one is shorter.


def measure(engine):
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stale-")))
        settings = ["limits.pushes_per_minute=0"]
        if engine == "postgres":
            url = stack.enter_context(postgres.database())[0]
            # A database's relays share keys, so that none makes its own.
            (folder / "state").mkdir()
            subprocess.run([SEALBELL, "keys", "new", "storage", "--file", str(folder / "state/storage.keys")],
                           check=True, capture_output=True, stdin=subprocess.DEVNULL)
            settings.append(f"store.url={url}")
        with relay(folder, *settings) as run:
            found = servers(run)
        begun = time.monotonic()
        if engine == "postgres":
            subprocess.run(["psql", url, "-qc", POSTGRES, "-c", "ANALYZE records"], check=True)
        else:
            with contextlib.closing(sqlite3.connect(folder / "state" / "relay.sqlite")) as store, store:
                for pragma in ("cache_size = -600000", "synchronous = off"):
                    store.execute("PRAGMA " + pragma)
                store.execute(SQLITE)
        print(f"{engine}: filled in {time.monotonic() - begun:.0f} s", flush=True)
        with relay(folder, *settings) as run:
            spans = []
            for server in found:
                server.door = Door(run["urls"]["public"])
                ours, seen = pages(server)
                assert abs(seen - ROWS // REALMS // 2) <= 1, seen
                spans += ours
            spans.sort()
            print(f"{engine}: {len(spans)} pages of {PAGE:,}, milliseconds over HTTP: "
                  f"p50 {statistics.median(spans):.1f}, p99 {spans[len(spans) * 99 // 100]:.1f}, "
                  f"most {spans[-1]:.1f}", flush=True)


for engine in sys.argv[1:] or ["sqlite", "postgres"]:
    measure(engine)
