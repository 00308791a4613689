"""Row in which PyCA cryptography is phones and servers of Nextcloud at a serving relay."""
import base64
import concurrent.futures
import hashlib
import json
import os
import secrets
import time

import requests
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tools import Failed, expect, relay

TIMEOUT_SECONDS = 30
INSTANCE = "/nextcloud-main"
AT_ONCE = 12
AGENT = {"User-Agent": "Mozilla/5.0 (Android) Nextcloud-Talk v20.0.0"}


def b64(data):
    return base64.b64encode(data).decode()


class User:
    """A user of a server, whose key signs."""

    def __init__(self, server="cloud.example.org"):
        self.name = f"user-{secrets.token_hex(4)}@{server}"
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.pem = self.key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()

    def signed(self, data):
        return b64(self.key.sign(data, padding.PKCS1v15(), hashes.SHA512()))


class Device:
    """One app password of a user, and the phone that has it."""

    def __init__(self, user):
        self.user = user
        self.preimage = json.dumps([user.name, secrets.randbelow(1 << 20)], separators=(",", ":")).encode()
        self.identifier = b64(hashlib.sha512(self.preimage).digest())
        self.token = secrets.token_urlsafe(16) + ":APA91b" + secrets.token_urlsafe(100)

    def registration(self, **more):
        return {"pushToken": self.token, "deviceIdentifier": self.identifier,
                "deviceIdentifierSignature": self.user.signed(self.preimage), "userPublicKey": self.user.pem, **more}

    def entry(self, subject=None):
        subject = subject or os.urandom(256)
        return json.dumps({"deviceIdentifier": self.identifier,
                           "pushTokenHash": hashlib.sha512(self.token.encode()).hexdigest(), "subject": b64(subject),
                           "signature": self.user.signed(subject), "priority": "high", "type": "alert"})


class Proxy:
    """The relay as apps and servers see it."""

    def __init__(self, run):
        self.url, self.control, self.seen = run["urls"]["public"], run["urls"]["sandbox-control"], 0
        self.session = requests.Session()
        self.session.trust_env = False

    def post(self, path, form, headers=None):
        return self.session.post(self.url + INSTANCE + path, data=form, headers=headers, timeout=TIMEOUT_SECONDS)

    def registers(self, form, path="/devices"):
        return self.post(path, form, AGENT).status_code

    def notifies(self, *entries):
        answer = self.post("/notifications", {f"notifications[{at}]": entry for at, entry in enumerate(entries)})
        expect(answer.status_code, 200, "a batch")
        return answer.json()

    def arrived(self, count):
        """Tokens of the next `count` deliveries at Google's double."""
        found, ends = [], time.monotonic() + TIMEOUT_SECONDS
        while len(found) < count:
            if time.monotonic() > ends:
                raise Failed(f"{len(found)} of {count} deliveries")
            page = self.session.get(f"{self.control}/fcm/deliveries?after={self.seen}&limit=1000",
                                    timeout=TIMEOUT_SECONDS).json()
            if page:
                self.seen = page[-1]["number"]
            found += [each["token"] for each in page]
            time.sleep(0.02)
        return found


def phones(folder):
    with relay(folder) as run:
        proxy = Proxy(run)
        device = Device(User())
        # One phone at one time, as an app that has lost count: all are taken, with tokens of their own; one stands.
        tokens = [secrets.token_urlsafe(16) + ":APA91b" + secrets.token_urlsafe(100) for _ in range(AT_ONCE)]
        forms = [{**device.registration(), "pushToken": token} for token in tokens]
        # Ten a minute are a device's allowance, so that some may be refused by it, but by nothing else.
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
            codes = list(threads.map(proxy.registers, forms))
        expect(set(codes) <= {200, 429}, True, f"registrations at one time: {sorted(codes)}")
        expect(codes.count(200) >= 10, True, f"registrations at one time: {sorted(codes)}")
        told = [proxy.notifies(Device.entry(of(device, token))) for token in tokens]
        expect(sum(each["failed"] == 0 for each in told), 1, "tokens that stand")
        expect([len(each["unknown"]) for each in told], [0] * AT_ONCE, "unknown, a moment after a change")
        [token] = proxy.arrived(1)
        expect(tokens[[each["failed"] for each in told].index(0)], token, "who was woken")

        # Several slashes are one, below the instance's name as well.
        second = Device(User())
        expect(proxy.registers(second.registration(), "//devices"), 200, "//devices")
        expect(proxy.notifies(second.entry())["failed"], 0, "a push to it")
        expect(proxy.arrived(1), [second.token], "a push to it")

        # A call without any entry is none.
        for form in ({}, {"other": "1"}):
            expect(proxy.post("/notifications", form).status_code, 400, f"a call of {form}")

        # Another key: 409, which asks for the account; what can prove nothing is a 403, and asks for nothing.
        thief = Device(User())
        thief.preimage, thief.identifier = second.preimage, second.identifier
        expect(proxy.registers(thief.registration()), 409, "another key")
        for cloud in ("alice@http://cloud.example.org", "alice@https://127.0.0.1:1"):
            expect(proxy.registers(thief.registration(cloudId=cloud)), 403, f"another key, by {cloud}")
        expect(proxy.notifies(second.entry())["failed"], 0, "the first key still stands")
        expect(proxy.arrived(1), [second.token], "the first key still stands")
    return None, f"{AT_ONCE} registrations of one phone at one time, {codes.count(200)} taken, one stands; doubled " \
        "slashes, empty calls, proofs that can never be had"


def of(device, token):
    """The same device with another token."""
    made = Device(device.user)
    made.preimage, made.identifier, made.token = device.preimage, device.identifier, token
    return made


ROWS = [("cryptography as Nextcloud's phones", phones)]
