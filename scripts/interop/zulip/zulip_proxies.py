"""A row in which a user's phones name push proxies that take every connection and never answer: nobody else's
notifications wait for that.
"""
import contextlib
import json
import pathlib
import socket
import threading
import time

from tools import Failed, expect, free_port, need_modules, relay
from .zulip_addresses import CloudPhone
from .zulip_bouncer import Origin
from .zulip_clients import USER, Client, ZapPhone, become_active
from .zulip_peer import Services

MALLORY = "mallory@example.com"
# As many devices as a user may have, each at a proxy of its own.
PROXIES, TEXTS, OTHERS = 32, 5, 4
SOON_SECONDS = 5


class Silence:
    """Servers that take connections, read nothing and say nothing."""

    def __init__(self, at_end):
        self.taken, self.urls = [], []
        for _ in range(PROXIES):
            listener = at_end.enter_context(socket.create_server(("127.0.0.1", 0)))
            self.urls.append(f"http://localhost:{listener.getsockname()[1]}/proxy")
            threading.Thread(target=self.take, args=(listener,), daemon=True).start()
        at_end.callback(self.end)

    def take(self, listener):
        with contextlib.suppress(OSError):
            while True:
                self.taken.append(listener.accept()[0])

    def end(self):
        for each in self.taken:
            each.close()


def row(folder):
    need_modules("nacl", "requests", "cryptography")
    folder, port = pathlib.Path(folder), free_port()
    place = folder / "of"
    place.mkdir()
    origin = Origin(place, f"http://127.0.0.1:{port}", more="  nextcloud: { allow_local_proxies: true }\n")
    took = []
    with contextlib.ExitStack() as at_end:
        served = at_end.enter_context(relay(folder, f"listeners.public.bind=127.0.0.1:{port}"))
        silence = Silence(at_end)
        at_end.enter_context(origin.runs())
        origin.operator("sign-up")
        origin.operator("realm", "add", "chat")
        keys = [json.loads(origin.operator("user", "add", user))["key"] for user in (USER, MALLORY)]
        client, phone, services = Client(origin.url, keys[0]), ZapPhone("fcm"), Services(
            served["urls"]["sandbox-control"])
        become_active(client, phone, served["public_keys"]["zulip-main"][0])
        client.session.close()
        for url in silence.urls:
            CloudPhone(origin, url, MALLORY)
        for number in range(TEXTS):
            origin.operator("notify", MALLORY, f"text {number}")
        ends = time.monotonic() + SOON_SECONDS
        while len(silence.taken) < PROXIES // 2 and time.monotonic() < ends:
            time.sleep(0.05)
        if not silence.taken:
            raise Failed("no proxy was called")
        for number in range(OTHERS):
            begun = time.monotonic()
            origin.operator("notify", USER, f"another's {number}")
            while not services.deliveries("fcm") and time.monotonic() < begun + 60:
                time.sleep(0.05)
            took.append(time.monotonic() - begun)
            [found] = services.arrived("fcm", 1)
            expect(found["token"], phone.token, "who was woken")
    if max(took) > SOON_SECONDS:
        raise Failed(f"another's text came after {max(took):.0f} s")
    return None, f"{PROXIES} proxies, {len(silence.taken)} connections; another's text after {max(took):.1f} s at most"


ROWS = [("Silent proxies beside our origin's relay", row)]
