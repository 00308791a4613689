"""Rows in which a relay refuses in ways that are hard to tell, and in which a trigger has many tokens of others."""
import contextlib
import json
import secrets
import threading
import time

from .marmot_stage import page, serving, trigger, until
from .nostr import nostr_relay_at
from tools import Failed, expect, free_port, need_modules

WRAP = 1059
# Tokens of a trigger that open to nobody here, before the one that does.
OTHERS = 39


class Relay:
    """A relay that keeps wraps, and grants or refuses subscriptions as it is told, in the way of strfry up to 1.0:
    by a NOTICE alone."""

    def __init__(self):
        self.says = None
        self.kept, self.asked, self.granted = [], [], {}
        self.lock = threading.Lock()

    def talk(self, socket):
        from websockets.exceptions import ConnectionClosed
        with contextlib.suppress(ConnectionClosed):
            for text in socket:
                self.hear(socket, json.loads(text))
        with self.lock:
            self.granted.pop(socket, None)

    def hear(self, socket, message):
        if message[0] == "EVENT":
            event = message[1]
            with self.lock:
                if event["kind"] == WRAP:
                    self.kept.append(event)
                listening = [each for each in self.granted.items() if event["kind"] == WRAP]
            socket.send(json.dumps(["OK", event["id"], True, ""]))
            for each, name in listening:
                each.send(json.dumps(["EVENT", name, event]))
        elif message[0] == "REQ":
            with self.lock:
                refusal = self.says
                self.asked.append(refusal)
                kept = list(self.kept)
                if refusal is None and any(WRAP in each.get("kinds", []) for each in message[2:]):
                    self.granted[socket] = message[1]
            if refusal is not None:
                return socket.send(json.dumps(refusal(message[1])))
            for event in kept:
                socket.send(json.dumps(["EVENT", message[1], event]))
            socket.send(json.dumps(["EOSE", message[1]]))

    def end(self):
        """Ends what it has granted, as strfry says it: nothing names the subscription."""
        with self.lock:
            sockets, self.granted = list(self.granted), {}
        for socket in sockets:
            socket.send(json.dumps(["NOTICE", "ERROR: subscription closed"]))


@contextlib.contextmanager
def at_port():
    need_modules("websockets")
    from websockets.sync.server import serve
    relay = Relay()
    with serve(relay.talk, "127.0.0.1", 0) as door:
        thread = threading.Thread(target=door.serve_forever)
        thread.start()
        try:
            yield relay, f"ws://127.0.0.1:{door.socket.getsockname()[1]}"
        finally:
            door.shutdown()
            thread.join()


def notice(_):
    return ["NOTICE", "ERROR: bad req: too many subscriptions"]


def by_notice(folder):
    with at_port() as (relay, url), serving(folder, [url]) as server:
        def wakes(what):
            server.wakes_each_once([trigger("push-v1", server.key)], [], to=[url])
        wakes("before")
        # It ends the subscription: nothing but a NOTICE says so, and what comes meanwhile must still wake.
        asked = len(relay.asked)
        relay.end()
        until("asked anew after a NOTICE", lambda: len(relay.asked) > asked or None)
        wakes("after an end by NOTICE")
        # It refuses from now on: the instance must not say that it hears.
        relay.says = notice
        with relay.lock:
            sockets = list(relay.granted)
        for socket in sockets:
            socket.close()
        # Whoever takes the NOTICE for nothing waits for an end of stored events, and listens without one.
        until("asked again after a refusal by NOTICE", lambda: relay.asked.count(notice) > 1 or None)
        expect(server.metric("sealbell_nostr_relays_connected"), 0, "relays that are listened at")
        expect(page(server.admin + "/health/ready?instance=marmot-main"), None, "ready")
        relay.says = None
        begun = time.monotonic()
        server.listens_at(1)
        seconds = time.monotonic() - begun
        wakes("once it grants again")
        server.settle([], to=[url])
        count = len(server.sent)
    return None, f"{count} devices woken once each; asked anew after an end by NOTICE, deaf and not ready while refused " \
        f"so, back {seconds:.0f} s later"


def refused(folder):
    """One relay of two says `blocked` or `restricted` for good: it is asked seldom, and the other one wakes."""
    notes = []
    for word in ("blocked: not here", "restricted: for members"):
        port = free_port()
        place = folder / word.split(":")[0]
        place.mkdir()
        with nostr_relay_at(port, place / "relay"), at_port() as (relay, url):
            good = f"ws://127.0.0.1:{port}"
            with serving(place, [good, url]) as server:
                relay.says = lambda name: ["CLOSED", name, word]
                with relay.lock:
                    sockets = list(relay.granted)
                for socket in sockets:
                    socket.close()
                server.listens_at(1)
                asked = len(relay.asked)
                server.wakes_each_once([trigger("push-v1", server.key)], [], to=[good])
                time.sleep(5)
                more = len(relay.asked) - asked
                if more > 2:
                    raise Failed(f"{word}: asked {more} times within 5 s")
                server.settle([], to=[good])
                notes.append(f"{word.split(':')[0]}: asked {more} times more")
    return None, "; ".join(notes) + "; the other relay wakes"


def crowded(folder):
    """The one token that opens stands last: each is tried."""
    from . import marmot_peer
    port = free_port()
    count = 0
    with nostr_relay_at(port, folder / "relay"):
        url = f"ws://127.0.0.1:{port}"
        with serving(folder, [url]) as server:
            for form in ("seed", "mip05-280"):
                made, tokens = trigger(form, server.key, devices=("apns",))
                own = marmot_peer.boxes_of(form, made["content"])
                others = []
                for _ in range(OTHERS):
                    other, _ = trigger(form, stranger(), devices=("apns",))
                    others += marmot_peer.boxes_of(form, other["content"])
                made["content"] = marmot_peer.content(form, others + own)
                server.wakes_each_once([(made, tokens)], [], to=[url])
                count += 1
            server.settle([], to=[url])
    expect(count, 2, "formats")
    return None, f"the last of {OTHERS + 1} tokens wakes, in {count} formats"


def stranger():
    """X of a key that is nobody's."""
    from coincurve import PrivateKey
    return PrivateKey(secrets.token_bytes(32)).public_key.format(compressed=True)[1:].hex()


ROWS = [("Marmot, refused by NOTICE alone", by_notice), ("Marmot, blocked and restricted", refused),
        ("Marmot, forty tokens of a trigger", crowded)]
