"""Rows in which a Marmot server's way to its relays is rough: connections that are cut while others publish, and a
relay that says things before it is asked, and things that nobody asked for.
"""
import asyncio
import contextlib
import json
import secrets
import threading
import time

import socks
from .at_relays import nostr_relay, sdk_relay, url_of
from .marmot_stage import each_format, serving, trigger
from tools import free_port, need_modules

# How long the server is kept from its relay, and how many triggers are published meanwhile.
AWAY_SECONDS = (3, 20)
MISSED = 20


class Forwarder(socks.Door):
    """Leads a port of its own to another, and can be shut: then it ends what it has and takes nothing new."""

    def __init__(self, target):
        super().__init__()
        self.target = target

    def shut(self):
        asyncio.run_coroutine_threadsafe(self.end(), self.loop).result()

    def mend(self):
        asyncio.run_coroutine_threadsafe(self.open(), self.loop).result()

    async def end(self):
        self.door.close()
        self.abort()

    async def serve(self, reader, writer):
        with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
            await self.join(reader, writer, *await asyncio.open_connection("127.0.0.1", self.target))


def missed(folder):
    """What is published while the connection is away wakes, once, by the relay's memory."""
    notes = []
    for name, relay in (("nostr-relay", nostr_relay("open")), ("nostr-sdk's", sdk_relay())):
        port = free_port()
        place = folder / name.replace("'", "")
        place.mkdir()
        with relay(port, place / "relay"), Forwarder(port) as way, serving(place, [url_of(way.port)]) as server:
            direct = [url_of(port)]
            server.wakes_each_once(each_format(server.key), [], to=direct)
            for seconds in AWAY_SECONDS:
                way.shut()
                server.listens_at(0)
                begun = time.monotonic()
                server.wake([trigger("push-v1", server.key, devices=("apns",)) for _ in range(MISSED)], [], to=direct)
                time.sleep(max(0, seconds - (time.monotonic() - begun)))
                way.mend()
                back = time.monotonic()
                server.listens_at(1)
                again = time.monotonic() - back
                server.services.all_of(server.sent)
                notes.append(f"{name} away {seconds} s: {MISSED} of {MISSED} woken, listened at after {again:.1f} s")
            server.settle([], to=direct)
    return None, "; ".join(notes)


# Names that a careless reader takes for its own, or does arithmetic with.
NAMES = ("1-1", "1-0", "0-0", "1--1", "", "-", "1-9223372036854775807", "9223372036854775807-1", "x" * 64)


def speaks(socket, key):
    """One connection of a relay that says what it likes, and answers well enough to be listened at."""
    def wrap():
        return {"id": secrets.token_hex(32), "pubkey": key, "created_at": int(time.time()), "kind": 1059,
                "tags": [["p", key]], "content": "", "sig": secrets.token_hex(64)}

    def rant():
        for name in NAMES:
            for said in (["EVENT", name, wrap()], ["EOSE", name], ["CLOSED", name, "error: x"],
                         ["OK", secrets.token_hex(32), True, ""], ["NOTICE", name], ["COUNT", name, {"count": -1}],
                         ["EVENT", name], ["EVENT"], [], {}, None, 1):
                socket.send(json.dumps(said))

    rant()
    for text in socket:
        asked = json.loads(text)
        if asked[0] == "REQ":
            rant()
            socket.send(json.dumps(["EVENT", asked[1], wrap()]))
            socket.send(json.dumps(["EOSE", asked[1]]))
            rant()
        elif asked[0] == "EVENT":
            socket.send(json.dumps(["OK", asked[1]["id"], True, ""]))


def unasked(folder):
    """A relay that says anything at any time ends nothing: the other one's triggers wake."""
    need_modules("websockets")
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.server import serve
    keys, connections = [], []

    def talk(socket):
        connections.append(socket)
        with contextlib.suppress(ConnectionClosed):
            speaks(socket, keys[0])

    port = free_port()
    with nostr_relay("open")(port, folder / "relay"), serve(talk, "127.0.0.1", 0) as liar:
        thread = threading.Thread(target=liar.serve_forever)
        thread.start()
        try:
            urls = [url_of(port), url_of(liar.socket.getsockname()[1])]
            with serving(folder, urls, keys.append) as server:
                for _ in range(5):
                    server.wakes_each_once(each_format(server.key), [], to=urls[:1])
                    for each in list(connections):
                        each.close()
                server.settle([], to=urls[:1])
                count = len(server.sent)
        finally:
            liar.shutdown()
            thread.join()
    return None, f"{count} devices woken once each through {len(connections)} connections of a relay that babbles"


ROWS = [("Marmot, connections cut", missed), ("Marmot, a relay that babbles", unasked)]
