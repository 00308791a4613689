"""Rows over WebSocket: PyPI's websockets on both ends, and the two Nostr relays that PyPI has."""
import contextlib
import json
import pathlib
import ssl
import sys
import threading
import urllib.request

from tools import Failed, answers, expect, free_port, need_modules, relay, running, swift_test

HERE = pathlib.Path(__file__).resolve().parent
MESSAGE_BYTES = 256 << 10
WAIT_SECONDS = 20
NOSTR_RELAY_PROGRAM = pathlib.Path(sys.executable).with_name("nostr-relay")

NOSTR_RELAY = """DEBUG: false
relay_name: interop
storage:
  sqlalchemy.url: sqlite+aiosqlite:///nostr.sqlite3
  num_concurrent_reqs: 10
  num_concurrent_adds: 2
  validators:
    - nostr_relay.validators.is_not_too_large
    - nostr_relay.validators.is_signed
    - nostr_relay.validators.is_recent
verification:
  nip05_verification: disabled
gunicorn:
  bind: 127.0.0.1:{port}
  workers: 1
  loglevel: warning
purple:
  host: 127.0.0.1
  port: {port}
  workers: 1
authentication: {authentication}
message_timeout: 1800
subscription_limit: 32
max_limit: 6000
# Of its content; as delivered 4,096, too little for a wrap.
max_event_size: 131072
"""
# Who may do what at nostr-relay: `a` is anybody, other roles come from its table or from our authenticator. The
# addresses stand under another name than in the configuration that it is delivered with, which its code never reads.
AUTHENTICATIONS = {
    "open": {"enabled": False},
    "proven": {"authenticator_class": "nostr_guard.Anyone", "actions": {"save": "w", "query": "r"}},
    "readers": {"actions": {"save": "a", "query": "r"}},
    "recipients": {"authenticator_class": "nostr_guard.Recipients", "actions": {"save": "a", "query": "a"}},
}


@contextlib.contextmanager
def nostr_relay_at(port, place, authentication="open"):
    """PyPI's nostr-relay on that port; `place` keeps what it stores. Yields its process."""
    need_modules("nostr_relay")
    place.mkdir(exist_ok=True)
    rules = {"enabled": True, "relay_urls": [f"ws://127.0.0.1:{port}"], **AUTHENTICATIONS[authentication]}
    (place / "config.yaml").write_text(NOSTR_RELAY.format(port=port, authentication=json.dumps(rules)))
    command = [str(NOSTR_RELAY_PROGRAM), "-c", "config.yaml", "serve"]
    # Beside the configuration, not in anybody's home.
    environment = {"HOME": str(place), "PYTHONPATH": str(HERE)}
    with running(command, place, answers(port), environment=environment) as process:
        yield process


@contextlib.contextmanager
def sdk_relay_at(port, place, *words):
    """The relay inside PyPI's nostr-sdk on that port. Yields its process."""
    need_modules("nostr_sdk")
    place.mkdir(exist_ok=True)
    with running([sys.executable, str(HERE / "nostr_local_relay.py"), str(port), *words], place,
                 answers(port)) as process:
        yield process


def heard(socket):
    """The next message of a relay."""
    return json.loads(socket.recv(WAIT_SECONDS))


def client(folder):
    """websockets as client of our simulated relay, with events that nostr-sdk signs."""
    need_modules("websockets", "nostr_sdk")
    from nostr_sdk import EventBuilder, Keys, Kind
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect
    keys = Keys.generate()
    with relay(folder) as run:
        url = run["urls"]["sandbox-nostr"]
        trust = ssl.create_default_context(cafile=folder / "state" / "sandbox" / "ca.pem")
        asked = urllib.request.Request(url.replace("wss:", "https:"), headers={"Accept": "application/nostr+json"})
        with urllib.request.urlopen(asked, timeout=WAIT_SECONDS, context=trust) as answer:
            expect(json.load(answer)["limitation"]["max_message_length"], MESSAGE_BYTES, "the relay's document")
        with connect(url, ssl=trust, compression="deflate", max_size=2 * MESSAGE_BYTES) as socket:
            expect(socket.protocol.extensions, [], "extensions")
            socket.send('["REQ","live",{"kinds":[1],"limit":0}]')
            expect(heard(socket), ["EOSE", "live"], "an empty request")
            event = EventBuilder(Kind(1), "zażółć 🔔 \"quoted\" \\ \n\t\b\f \u2028").finalize(keys)
            text = '["EVENT",' + event.as_json() + "]"
            # In pieces of seven characters.
            socket.send(text[at:at + 7] for at in range(0, len(text), 7))
            expect(heard(socket)[:3], ["OK", event.id().to_hex(), True], "an event in fragments")
            expect(heard(socket), ["EVENT", "live", json.loads(event.as_json())], "the event as it comes back")
            forged = json.loads(event.as_json()) | {"content": "forged"}
            socket.send(json.dumps(["EVENT", forged]))
            expect(heard(socket)[2], False, "a forged event")
            for _ in range(3):
                if not socket.ping().wait(WAIT_SECONDS):
                    raise Failed("no PONG")
            socket.send(" " * MESSAGE_BYTES)
            expect(heard(socket)[0], "NOTICE", "a message of the full size that says nothing")
            try:
                socket.send(" " * (MESSAGE_BYTES + 1))
                socket.recv(WAIT_SECONDS)
            except ConnectionClosed as end:
                expect(end.rcvd and end.rcvd.code, 1009, "a message too large")
        socket = connect(url, ssl=trust)
        socket.close(4000, "enough")
        expect(socket.close_code, 4000, "the code that was said back")
    return None, "document, fragments, events both ways, PING, bounds, farewells"


def echo(socket):
    """Says back what it hears, in fragments; on request it says farewell."""
    for message in socket:
        if message == "close":
            socket.close(3001, "as asked")
            return
        step = max(1, len(message) // 5)
        socket.send([message[at:at + step] for at in range(0, len(message), step)] or [message])


def server(folder):
    """websockets as server, our client against it."""
    need_modules("websockets")
    from websockets.sync.server import serve
    with serve(echo, "127.0.0.1", 0, max_size=2 * MESSAGE_BYTES) as running_server:
        thread = threading.Thread(target=running_server.serve_forever)
        thread.start()
        try:
            port = running_server.socket.getsockname()[1]
            passed(*swift_test("ForeignWebSocketTests", {"SEALBELL_ECHO": f"ws://127.0.0.1:{port}/"}))
        finally:
            running_server.shutdown()
            thread.join()
    return None, "every size of length, fragments, PING, farewells"


def passed(status, text):
    """Raises with the first thing that a suite of ours objected to."""
    if status:
        told = [line for line in text.splitlines() if "recorded an issue" in line] or text.strip().splitlines()
        raise Failed(told[0][:300])


def published(port, needs_proof):
    """Our client publishes to the relay on that port and reads back."""
    environment = {"SEALBELL_NOSTR_RELAY": f"ws://127.0.0.1:{port}"}
    if needs_proof:
        environment["SEALBELL_NOSTR_AUTH"] = "1"
    passed(*swift_test("ForeignRelayTests", environment))


def nostr_relay(folder):
    for authentication in ("open", "proven"):
        port = free_port()
        with nostr_relay_at(port, folder / authentication, authentication):
            published(port, authentication == "proven")
    return None, "publish, read back, a relay list, wraps; then the same with a proof (NIP-42)"


def nostr_sdk(folder):
    for words in ((), ("auth",)):
        port = free_port()
        with sdk_relay_at(port, folder / f"proof-{len(words)}", *words):
            published(port, bool(words))
    return None, "publish, read back, a relay list, wraps; then the same with a proof (NIP-42)"


ROWS = [("websockets as client", client), ("websockets as server", server), ("nostr-relay", nostr_relay),
        ("the relay inside nostr-sdk", nostr_sdk)]
