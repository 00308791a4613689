"""Rows in which `sealbell serve` is a Marmot server at the two Nostr relays that PyPI has, and PyPI's nostr-sdk
is who wakes it, or who is woken by our origin.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import socks
from .marmot_stage import WAIT_SECONDS, each_format, nostr_sdk, serving, trigger
from .nostr import NOSTR_RELAY_PROGRAM, nostr_relay_at, passed, sdk_relay_at
from tools import ROOT, Failed, NotRunnable, certificates, expect, free_port, need, need_modules, swift_test

# Of one relay in the row that counts.
MANY = 400


def url_of(port):
    return f"ws://127.0.0.1:{port}"


def may_read(place):
    """Gives the server's key the reader's role in nostr-relay's own table, as its operator would."""
    def give(key):
        told = subprocess.run([str(NOSTR_RELAY_PROGRAM), "-c", "config.yaml", "role", "set", "-p", key, "-r", "ar"],
                              cwd=place, env={**os.environ, "HOME": str(place)}, capture_output=True, text=True)
        if told.returncode:
            raise NotRunnable("nostr-relay role set: " + told.stderr.strip()[-200:])
    return give


def woken(folder, relay, name, before=None, proves=False, shows_lists=True):
    """All formats through one relay, each push once."""
    port = free_port()
    place = folder / name
    place.mkdir()
    with relay(port, place / "relay"):
        with serving(place, [url_of(port)], before and before(place / "relay")) as server:
            urls = [url_of(port)]
            lookup = urls if shows_lists else []
            told = server.wakes_each_once(each_format(server.key), lookup, to=urls, proves=proves)
            expect(told, lookup, "the relay list as nostr-sdk reads it")
            server.settle(lookup, to=urls, proves=proves)
            return len(server.sent)


def nostr_relay(authentication):
    return lambda port, place: nostr_relay_at(port, place, authentication)


def sdk_relay(*words):
    return lambda port, place: sdk_relay_at(port, place, *words)


def at_nostr_relay(folder):
    count = woken(folder, nostr_relay("open"), "open")
    return None, f"{count} devices by nostr-sdk's wraps of four formats, sealed and not: each woken once"


def at_nostr_relay_proven(folder):
    # Where nobody else may read, senders know the address from elsewhere.
    counts = [woken(folder, nostr_relay("readers"), "readers", may_read, shows_lists=False),
              woken(folder, nostr_relay("recipients"), "recipients")]
    return None, f"{counts[0]} devices where readers need a role, {counts[1]} where wraps are shown to their p alone"


def at_sdk_relay(folder):
    counts = [woken(folder, sdk_relay(), "open"), woken(folder, sdk_relay("auth"), "auth", proves=True),
              woken(folder, sdk_relay("recipients"), "recipients")]
    return None, f"{counts[0]} devices; {counts[1]} with a proof of everybody; {counts[2]} with wraps for their p alone"


def both(folder):
    """One wrap at both relays wakes once; either may go and come back."""
    ports = [free_port(), free_port()]
    urls = [url_of(port) for port in ports]
    kinds = [nostr_relay("open"), sdk_relay()]
    with contextlib.ExitStack() as stack:
        stands = []
        for number in (0, 1):
            stands.append(stack.enter_context(contextlib.ExitStack()))
            stands[number].enter_context(kinds[number](ports[number], folder / f"relay-{number}"))
        with serving(folder, urls) as server:
            told = server.wakes_each_once(each_format(server.key), urls)
            expect(sorted(told), sorted(urls), "the relay list")
            for gone in (0, 1):
                other = urls[1 - gone]
                stands[gone].close()
                server.listens_at(1)
                server.wakes_each_once([trigger("push-v1", server.key)], [other], to=[other])
                stands[gone].enter_context(kinds[gone](ports[gone], folder / f"relay-{gone}"))
                server.listens_at(2)
                # Whichever lost its events was given the list anew.
                server.wakes_each_once([trigger("mip05-1084", server.key)], [urls[gone]], to=[urls[gone]])
            server.wakes_each_once([trigger("seed", server.key)], urls)
            server.settle(urls)
            seen = server.metric("sealbell_nostr_events_total")
    return None, f"{len(server.sent)} devices woken once each by {seen} wraps; each relay was ended and came back"


def many(folder):
    notes = []
    for name, relay in (("nostr-relay", nostr_relay("open")), ("nostr-sdk's", sdk_relay())):
        port = free_port()
        place = folder / name.replace("'", "")
        place.mkdir()
        with relay(port, place / "relay"), serving(place, [url_of(port)]) as server:
            begun = time.monotonic()
            triggers = [trigger("push-v1", server.key, devices=("apns",)) for _ in range(MANY)]
            server.wakes_each_once(triggers, [url_of(port)])
            seconds = time.monotonic() - begun
            server.settle([url_of(port)])
            notes.append(f"{name}: {MANY} sent, {MANY} woken, 0 lost, 0 doubled, {seconds:.0f} s")
    return None, "; ".join(notes)


def received(told, rows, url, secret):
    """What nostr-sdk unwrapped of one relay, held against what our origin says it sent."""
    from . import marmot_peer
    found = {each["id"]: each for each in told}
    expect(sorted(found), sorted(row["id"] for row in rows), f"wraps at {url}")
    authors = set()
    for row in rows:
        wrap = found[row["id"]]
        inner = wrap["inner"]
        expect((inner["kind"], inner["tags"], wrap["sealed"]),
               (446, marmot_peer.FORMATS[row["format"]][3], row["sealed"]), "the trigger")
        expect([tag[0] for tag in wrap["tags"]], ["p"], "the wrap's tags")
        expect(inner["pubkey"], wrap["by"], "the author of trigger and seal")
        if not 0 <= wrap["age"] <= 172_800 + 60:
            raise Failed(f"a wrap is {wrap['age']} s old")
        if not row["sealed"]:
            expect(wrap["valid"], True, "a trigger without a seal")
        elif "sig" in inner:
            raise Failed("a sealed trigger is signed")
        authors |= {wrap["author"], wrap["by"]}
        opened, decoys = [], 0
        for box in marmot_peer.boxes_of(row["format"], inner["content"]):
            try:
                opened.append(marmot_peer.unseal(row["format"], box, secret)[1].hex())
            except Exception:  # A decoy fails in whatever way its random bytes have it.
                decoys += 1
        expect(sorted(opened), sorted(row["tokens"]), f"tokens of {row['format']}")
        if not decoys:
            raise Failed(f"no decoy in {row['format']}")
    expect(len(authors), 2 * len(rows), "keys, each used once")


def origin(folder):
    """Our origin publishes at both relays; nostr-sdk plays the server, and unwraps what lies there."""
    need_modules("nostr_sdk", "coincurve", "cryptography")
    from coincurve import PrivateKey
    secret = PrivateKey()
    ports = [free_port(), free_port()]
    urls = [url_of(port) for port in ports]
    with nostr_relay_at(ports[0], folder / "nostr-relay"), sdk_relay_at(ports[1], folder / "sdk", "auth"):
        file = folder / "sent.json"
        told = nostr_sdk("list", {"secret": secret.secret.hex(), "relays": urls, "proves": True})
        expect(told["taken"], 2, f"relays that took nostr-sdk's list ({told['refused']})")
        key = secret.public_key.format(compressed=True)[1:].hex()
        passed(*swift_test("ForeignOriginTests", {
            "SEALBELL_ORIGIN_SERVER": key, "SEALBELL_ORIGIN_RELAYS": ",".join(urls),
            "SEALBELL_ORIGIN_INTO": str(file)}))
        rows = json.loads(file.read_text())
        for url, proves in zip(urls, (False, True)):
            told = nostr_sdk("read", {"secret": secret.secret.hex(), "relays": [url], "count": len(rows),
                                      "proves": proves})
            received(told[url], rows, url, secret.secret)
    tokens = sum(len(row["tokens"]) for row in rows)
    return None, f"{len(rows)} wraps of four formats at each relay unwrapped by nostr-sdk, {tokens} tokens opened"


# What a name is looked up by: files that the C library reads for it, and the ports of DNS.
LOOKUP_FILES = re.compile(r'"/etc/(?:hosts|resolv\.conf|nsswitch\.conf|host\.conf)"')
NAME_DAEMON = pathlib.Path("/var/run/nscd/socket")
LOOKUP_PORT = re.compile(r"sin6?_port=htons\((?:53|853|5353)\)")
DESTINATION = re.compile(r"connect\(\d+, \{sa_family=AF_INET6?, sin6?_port=htons\((\d+)\)")


def watched(trace):
    """A command that runs another and writes down each file it opens and each address it speaks to."""
    if not (strace := shutil.which("strace")):
        raise NotRunnable("no strace on this machine")
    # -D: the process id is the program's own.
    return [strace, "-D", "-f", "-qq", "-o", str(trace),
            "-e", "trace=openat,open,connect,sendto,sendmsg,sendmmsg,socket"]


def looks_nothing_up(trace, allowed):
    """No name was looked up, and nobody was connected to but on these ports. How often the proxy's was."""
    lines = trace.read_text(errors="replace").splitlines()
    for line in lines:
        if LOOKUP_FILES.search(line) or LOOKUP_PORT.search(line):
            shutil.copy(trace, ROOT / ".build" / trace.name)
            raise Failed(f"a name was looked up here, see .build/{trace.name}: {line[:160]}")
    ports = [int(found[1]) for line in lines if (found := DESTINATION.search(line))]
    strangers = set(ports) - set(allowed)
    if strangers:
        raise Failed(f"connected past the proxy to ports {sorted(strangers)}")
    return ports.count(allowed[0])


def asked_well(asked, names, identities):
    """Each demand named a relay, under so many different credentials."""
    for name, _, credentials in asked:
        if credentials is None or name not in names:
            raise Failed(f"the proxy was asked {name}")
    expect(len({credentials for _, _, credentials in asked}), identities, "different credentials")


def tor(folder):
    """Server and origin through a SOCKS proxy, watched by strace."""
    need("openssl")
    need_modules("nostr_sdk", "coincurve", "cryptography")
    if NAME_DAEMON.exists():
        raise NotRunnable("nscd would look names up in our place, and is asked for addresses as well")
    named, onion = "localhost.relay.example", "a" * 56 + ".onion"
    certificates(folder, named)
    ports = [free_port(), free_port()]
    local = [url_of(port) for port in ports]
    urls = [f"wss://{named}", f"ws://{onion}"]
    routes = {(named, 443): ports[0], (onion, 80): ports[1]}
    with nostr_relay_at(ports[0], folder / "relay-0"), sdk_relay_at(ports[1], folder / "relay-1"), \
            socks.Proxy(routes, folder / "leaf.pem", folder / "leaf.key") as proxy:
        extra = [f"instances.marmot-main.proxy=socks5://127.0.0.1:{proxy.port}",
                 f"instances.marmot-main.ca={folder / 'ca.pem'}"]
        trace = folder / "serve.trace"
        with serving(folder, urls, extra=extra, wrapper=watched(trace)) as server:
            server.wakes_each_once(each_format(server.key), [], to=local)
            proxy.cut()
            server.listens_at(0)
            server.listens_at(2)
            server.settle([], to=local)
            services = {int(url.rsplit(":", 1)[1]) for url in server.stand_ins.values()}
            demands = len(proxy.asked)
            # A circuit for each connection.
            asked_well(proxy.asked, {named, onion}, demands)
            events = origin_watched(folder, server.key, urls, proxy)
            ours = proxy.asked[demands:]
            # A circuit for each event, and one for the lookup.
            asked_well(ours, {named, onion}, events + 1)
            expect(looks_nothing_up(folder / "origin.trace", [proxy.port]), len(ours), "the origin's connections")
        expect(looks_nothing_up(trace, [proxy.port, *services]), demands, "the server's connections")
    return None, (f"{len(server.sent)} devices; {demands} connections of the server and {events + 1} identities of the "
                  "origin, none used twice; strace saw no name looked up and nobody else connected to")


def origin_watched(folder, key, urls, proxy):
    """Our origin through the proxy; how many events it published."""
    tests = ROOT / ".build" / "debug" / "SealbellPackageTests.xctest"
    told = subprocess.run(
        [*watched(folder / "origin.trace"), str(tests), "--testing-library", "swift-testing",
         "--filter", "ForeignOriginTests"],
        cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=5 * WAIT_SECONDS, env={
            **os.environ, "SEALBELL_ORIGIN_SERVER": key, "SEALBELL_ORIGIN_RELAYS": ",".join(urls),
            "SEALBELL_ORIGIN_INTO": str(folder / "sent.json"), "SEALBELL_ORIGIN_SOCKS": str(proxy.port),
            "SEALBELL_ORIGIN_CA": str(folder / "ca.pem")})
    passed(told.returncode, told.stdout + told.stderr)
    if not (folder / "sent.json").exists():
        raise Failed("our origin sent nothing")
    return len(json.loads((folder / "sent.json").read_text()))


ROWS = [("Marmot at nostr-relay", at_nostr_relay), ("Marmot at nostr-relay, NIP-42", at_nostr_relay_proven),
        ("Marmot at nostr-sdk's relay", at_sdk_relay), ("Marmot at both relays", both),
        ("Marmot, hundreds of triggers", many), ("our Marmot origin, nostr-sdk reads", origin),
        ("Marmot through a SOCKS proxy", tor)]
