"""A row in which names have two addresses, one of them dead, before or behind the one that lives: that of the relay
that our origin calls, and that of a Nextcloud proxy. Everything runs in a network and with a hosts file of its own.
"""
import contextlib
import hashlib
import json
import os
import pathlib
import re
import secrets
import socket
import ssl
import subprocess
import sys
import threading
import time

import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tools import HERE, SEALBELL, Failed, NotRunnable, certificates, expect, free_port, need, need_modules, relay
from .zulip_bouncer import Origin
from .zulip_clients import USER, Client, ZapPhone
from .zulip_peer import NamedAddress, Services

NAME = "relay.test"
ALIVE, OTHER = "127.0.0.3", "127.0.0.2"
PUSH_PATH = "apps/notifications/api/v2/push"
AGENT = {"User-Agent": "Mozilla/5.0 (Android) ownCloud-android/3.30.0"}
# Each step: an attempt's share, the call, and what a slow machine needs.
SOON_SECONDS = 5
# A look-up that fails is made again with the call's next try.
NAMELESS_SECONDS = 1
FOREIGN = "has another's certificate"
# What an address is that is not the relay's, and whether the resolver puts it where the hosts file does.
DEAD = {"refuses": (OTHER, True), "refuses on IPv6": ("::1", False), "has a full queue": (OTHER, True),
        "accepts and is silent": (OTHER, True), FOREIGN: (OTHER, True), "swallows": ("192.0.2.1", False),
        "has no route": ("2001:db8::7", False), "swallows on IPv6": ("2001:db8:1::1", False)}


class Dead:
    """Listeners at the relay's ports that are as dead as is wanted."""

    def __init__(self, what, address, ports, foreign):
        self.sockets = []
        for port in ports if what in ("has a full queue", "accepts and is silent", FOREIGN) else ():
            listener = socket.create_server((address, port), backlog=0 if what == "has a full queue" else 100)
            self.sockets.append(listener)
            if what == FOREIGN:
                threading.Thread(target=self.greet, args=(listener, foreign), daemon=True).start()
            for _ in range(3 if what == "has a full queue" else 0):
                filler = socket.socket()
                filler.setblocking(False)
                filler.connect_ex((address, port))
                self.sockets.append(filler)

    @staticmethod
    def greet(listener, foreign):
        with contextlib.suppress(OSError):
            while True:
                one = listener.accept()[0]
                # Whoever does not trust the certificate ends the handshake.
                with contextlib.suppress(OSError), foreign.wrap_socket(one, server_side=True) as peer:
                    peer.recv(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in self.sockets:
            # A thread that waits in it holds its port else.
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def names(addresses, hosts):
    """Writes the hosts file in place, since it is mounted; the order in which the resolver gives the addresses."""
    hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{address} {NAME}\n" for address in addresses))
    found = [each[4][0] for each in socket.getaddrinfo(NAME, 80, type=socket.SOCK_STREAM)]
    expect(sorted(found), sorted(addresses), "what the hosts file says")
    return found


class CloudPhone:
    """A phone of Nextcloud's push with an app password of its own, registered at the origin."""

    def __init__(self, origin, proxy, user=USER):
        self.token = secrets.token_urlsafe(16) + ":APA91b" + secrets.token_urlsafe(100)
        self.url, self.proxy = origin.url + "/ocs/v2.php/", proxy
        self.auth = (user, json.loads(origin.operator("user", "key", user, "--nextcloud"))["key"])
        self.pem = rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
        self.register()

    def ask(self, method, path, form=None):
        return requests.request(method, self.url + path, auth=self.auth, timeout=15, json=form, headers={
            "OCS-APIRequest": "true", "Accept": "application/json", **AGENT})

    def register(self, status=201):
        told = self.ask("POST", PUSH_PATH, {
            "pushTokenHash": hashlib.sha512(self.token.encode()).hexdigest(), "devicePublicKey": self.pem,
            "proxyServer": self.proxy})
        expect(told.status_code, status, f"the door's answer {told.text[:200]}")
        self.data = told.json()["ocs"]["data"]

    def at_proxy(self, session, url, **more):
        """Registers at the proxy, by a way of its own: that of phones is not what is tried."""
        form = {"pushToken": self.token, "deviceIdentifier": self.data["deviceIdentifier"],
                "deviceIdentifierSignature": self.data["signature"], "userPublicKey": self.data["publicKey"]}
        told = session.post(url + "/devices", data=form, timeout=15, **more)
        expect(told.status_code, 200, f"the proxy's answer {told.text[:200]}")


def lanes(origin):
    """Answers of each kind of the origin's lanes that were no retries, from its metrics."""
    urls = json.loads((origin.state / "run.json").read_text())["urls"]
    text = requests.get(urls["admin"] + "/metrics", timeout=15).text
    found = re.findall(r'^sealbell_push_answers_total\{([^}]*)\} (\d+)', text, re.MULTILINE)
    return {re.search(r'lane="origin\.([^/]+)/', labels).group(1): int(count) for labels, count in found
            if 'lane="origin.' in labels and 'outcome="retry"' not in labels}


class Clock:
    """How long each step took, and which took too long."""

    def __init__(self, case):
        self.case, self.slowest, self.begun = case, 0.0, time.monotonic()

    def step(self, what):
        seconds = time.monotonic() - self.begun
        if seconds > SOON_SECONDS:
            raise Failed(f"{self.case}: {what} after {seconds:.1f} s")
        self.slowest, self.begun = max(self.slowest, seconds), time.monotonic()


def within(seconds, is_so, what):
    ends = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > ends:
            raise Failed(f"{what}: not within {seconds} s")
        time.sleep(0.02)


def case(what, folder, served, services, ports, between=None):
    """One origin that knows nothing yet: its first call of each kind, and the next one, behind what is `between`."""
    authority = folder.parent / "ca.pem"
    origin = Origin(folder, f"https://{NAME}:{ports[0]}", authority,
                    "  nextcloud: { allow_local_proxies: true }\n")
    clock = Clock(what)
    with origin.runs():
        clock.step("the start")
        origin.operator("sign-up")
        clock.step("the sign-up")
        origin.operator("realm", "add", "chat")
        key = json.loads(origin.operator("user", "add", USER))["key"]
        client, phone = Client(origin.url, key), ZapPhone("fcm")
        within(SOON_SECONDS, lambda: json.loads(origin.operator("status"))["relay"] == "told", f"{what}: the realm")
        clock.step("the realm")
        client("POST", "mobile_push/register", **phone.fields(served["public_keys"]["zulip-main"][0]))
        told = [(each["op"], each["status"]) for each in client.next(2, what)]
        expect(told, [("add", "pending"), ("update", "active")], f"{what}: a registration")
        clock.step("a registration")
        cloud = CloudPhone(origin, f"https://{NAME}:{ports[1]}/nextcloud-main")
        session = requests.Session()
        session.mount("https://", NamedAddress(NAME))
        cloud.at_proxy(session, f"https://{ALIVE}:{ports[1]}/nextcloud-main", verify=str(authority),
                       headers={"Host": NAME, **AGENT})
        for happens in (between, None):
            clock.begun = time.monotonic()
            expect(json.loads(origin.operator("notify", USER, "two ways"))["devices"], 2, "devices")
            tokens = {each["token"] for each in services.arrived("fcm", 2)}
            expect(tokens, {phone.token, cloud.token}, f"{what}: who was woken")
            clock.step("a notification")
            if happens:
                happens()
        origin.operator("stale")
        within(SOON_SECONDS, lambda: lanes(origin).get("stale-list"), f"{what}: the stale list")
        clock.step("the stale list")
        client.session.close()
    services.nothing_more(what)
    return clock.slowest


class Way:
    """Takes connections at the other address, and carries them to the relay until it is closed, with all of them."""

    def __init__(self, ports):
        self.sockets = []
        for port in ports:
            listener = socket.create_server((OTHER, port))
            self.sockets.append(listener)
            threading.Thread(target=self.take, args=(listener, port), daemon=True).start()

    def take(self, listener, port):
        with contextlib.suppress(OSError):
            while True:
                ends = [listener.accept()[0], socket.create_connection((ALIVE, port))]
                self.sockets += ends
                for one, other in (ends, ends[::-1]):
                    threading.Thread(target=self.carry, args=(one, other), daemon=True).start()

    @staticmethod
    def carry(one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(65_536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def close(self):
        for each in self.sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def moves(folder, served, services, ports, hosts):
    """The name changes its address while the origin runs, with connections to the old one, which is gone then; for a
    moment it has none.
    """
    names([OTHER], hosts)
    way = Way(ports)

    def leave():
        way.close()
        hosts.write_text("127.0.0.1 localhost\n")
        threading.Timer(NAMELESS_SECONDS, names, ([ALIVE], hosts)).start()

    return case("the name moves", folder, served, services, ports, leave)


def inside(folder):
    """What runs in its own network: one relay, and an origin for each kind of dead address and each order."""
    for words in ("link set lo up", "addr add 192.0.2.200/24 dev lo", "addr add 2001:db8:1::2/64 dev lo",
                  "route del 192.0.2.0/24 dev lo table local", "route replace 192.0.2.0/24 dev lo"):
        subprocess.run(["ip", *words.split()], capture_output=True)
    hosts = folder / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)
    certificates(folder, NAME)
    (folder / "foreign").mkdir()
    certificates(folder / "foreign", NAME)
    foreign = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    foreign.load_cert_chain(folder / "foreign" / "leaf.pem", folder / "foreign" / "leaf.key")
    ports = [free_port(), free_port()]
    said = []
    settings = [f"listeners.{name}.{key}={value}" for name, port, instance in (
        ("public", ports[0], "zulip-main"), ("cloud", ports[1], "nextcloud-main")) for key, value in (
            ("bind", f"{ALIVE}:{port}"), ("serves", instance), ("tls.cert", folder / "leaf.pem"),
            ("tls.key", folder / "leaf.key"))]
    with relay(folder, *settings, "listeners.other.bind=127.0.0.1:0", "listeners.other.serves=session-main") as served:
        services = Services(served["urls"]["sandbox-control"])
        for kind, (address, is_ours) in DEAD.items():
            # Where the resolver orders by itself, the file's order changes nothing.
            for order in ([address, ALIVE], [ALIVE, address])[:2 if is_ours else 1]:
                found = names(order, hosts)
                if is_ours:
                    expect(found, order, "the resolver's order")
                what = f"{kind}, {'first' if found[0] == address else 'last'}"
                place = folder / re.sub(r"\W", "", what)
                place.mkdir()
                with Dead(kind, address, ports, foreign):
                    said.append(f"{what} {case(what, place, served, services, ports):.1f}")
        place = folder / "moves"
        place.mkdir()
        said.append(f"the name moves {moves(place, served, services, ports, hosts):.1f}")
    print("; ".join(said))


def row(folder):
    need("unshare", "ip", "mount", "openssl")
    need_modules("nacl", "requests", "cryptography")
    probe = subprocess.run(["unshare", "-n", "-m", "true"], capture_output=True)
    if probe.returncode:
        raise NotRunnable("no network of its own may be made here")
    told = subprocess.run(["unshare", "-n", "-m", sys.executable, "-m", "zulip.zulip_addresses", str(folder)], cwd=HERE,
                          capture_output=True, text=True, timeout=500, env={**os.environ, "SEALBELL_BIN": SEALBELL})
    if told.returncode:
        raise Failed((told.stderr.strip().splitlines() or ["nothing said"])[-1])
    return None, f"slowest step in seconds: {told.stdout.strip()}"


ROWS = [("Two addresses, one dead, of our origin's relay", row)]

if __name__ == "__main__":
    inside(pathlib.Path(sys.argv[1]))
