"""Row in which PyNaCl is a Session device: it subscribes in every spelling, by onion and in the clear, and opens."""
import json
import os
import secrets

from bencode2 import bencode
from nacl.exceptions import CryptoError

from tools import Failed, expect, relay
from .network import network
from .phone import AES, GROUP, SPELLINGS, USER, XCHACHA, Account, Door, Phone, Services

TOPIC = "org.example.sandbox"
# The longest that a push carries.
LARGEST_BYTES = 2500


def added(told):
    expect((told.get("success"), told.get("added"), "message" in told), (True, True, True), "a subscription")


def kinds():
    """Accounts as apps have them: a user's, a group's by its admin, and a group's by a member."""
    group = [-11, 11, 12, 13, 14]
    return [lambda: Phone(Account(USER)), lambda: Phone(Account(GROUP), group),
            lambda: Phone(Account(GROUP, delegates=True), group, service="firebase")]


class Talk:
    def __init__(self, run, network):
        self.door, self.services, self.network = Door(run), Services(run), network
        self.phones, self.replies = [], 0

    def by_onion(self, *arguments, **options):
        code, body = self.door.by_onion(*arguments, **options)
        self.replies += 1
        expect(code, 200, "a reply's code")
        return json.loads(body)

    def subscribe(self):
        for make in kinds():
            for spell in SPELLINGS.values():
                phone = make()
                added(self.door.plain("/subscribe", phone.subscribe(spell)))
                self.phones.append(phone)
            for cipher, names in ((XCHACHA, True), (AES, True), (AES, False)):
                phone = make()
                added(self.by_onion("/subscribe", phone.subscribe(), cipher, names))
                told = self.by_onion("/subscribe", phone.subscribe(), cipher, names)
                expect((told.get("success"), told.get("updated")), (True, True), "the same again")
                self.phones.append(phone)
        # Several at once, one of them forged: each has its own answer.
        several = [make() for make in kinds()]
        bodies = [phone.subscribe() for phone in several]
        bodies.insert(1, {**bodies[0], "sig_ts": bodies[0]["sig_ts"] - 1})
        told = self.by_onion("/subscribe", bodies, XCHACHA)
        expect(["error" if "error" in each else each["added"] for each in told], [True, "error", True, True],
               "an array")
        self.phones += several

    def refusals(self):
        phone = Phone(Account(USER))
        other = Phone(Account(USER)).subscribe()
        body = phone.subscribe()
        forged = {"another's signature": {"signature": other["signature"]},
                  "another's key": {"session_ed25519": other["session_ed25519"]},
                  "other namespaces": {"namespaces": [0, 1]}, "no data after all": {"data": False},
                  "namespaces out of order": {"namespaces": [2, 0, 3, 4, 5]}}
        for name, change in forged.items():
            for told in (self.door.plain("/subscribe", {**body, **change}),
                         self.by_onion("/subscribe", {**body, **change}, AES)):
                expect((type(told.get("error")), "success" in told), (int, False), name)
        told = self.by_onion("/subscribe", {**body, "service": "huawei"}, XCHACHA)
        expect(told.get("error"), 2, "a service that is not there")
        for cipher in (XCHACHA, AES):
            expect(self.door.by_onion("/nowhere", {}, cipher)[0], 404, "another path")
            expect(self.door.by_onion("/subscribe", {}, cipher, method="GET")[0], 405, "another method")
            expect(self.door.brought(bencode([b"{}", b"", b""]), cipher)[0], 400, "three parts")
        # There is no key to answer with.
        answer = self.door.post("/oxen/v4/lsrpc", b"\x10\0\0\0" + os.urandom(16) + b"{}")
        expect(answer.status_code, 400, "an onion that cannot be opened")

    def pushes(self):
        """Each phone gets its account's message, once, and nobody else opens it."""
        by_token, told = {}, {}
        for phone in self.phones:
            self.network.watched(phone)
            namespace = phone.namespaces[0]
            hash = secrets.token_urlsafe(32).encode()
            message = os.urandom(LARGEST_BYTES if phone is self.phones[0] else 300)
            when = self.network.store(phone.account, hash, message, namespace)
            by_token[phone.token.lower()] = phone
            told[phone.token.lower()] = (hash.decode(), namespace, message, when)
        count = {service: sum(phone.service == service for phone in self.phones) for service in ("apns", "firebase")}
        seen = []
        for each in self.services.arrived("production", count["apns"]):
            expect((each["topic"], each["pushType"], each["priority"]), (TOPIC, "alert", 10), "at Apple")
            expect((each["json"]["spns"], each["json"]["aps"]["mutable-content"]), (1, 1), "Apple's body")
            seen.append((each["token"], each["json"]))
        for each in self.services.arrived("fcm", count["firebase"]):
            inner = each["json"]["message"]
            expect(inner["data"]["spns"], "1", "Google's data")
            seen.append((each["token"], inner["data"]))
        for token, body in seen:
            phone, (hash, namespace, message, when) = by_token[token.lower()], told.pop(token.lower())
            facts, data = phone.open(body["enc_payload"])
            expect(data, message, "what the phone opened")
            expect({key: facts.get(key) for key in "@#ntl"},
                   {"@": phone.account.id.hex(), "#": hash, "n": namespace, "t": when, "l": len(message)},
                   "what the phone was told")
            stranger = next(other for other in self.phones if other is not phone)
            try:
                stranger.open(body["enc_payload"])
            except CryptoError:
                continue
            raise Failed("another phone's key opened the push")
        return len(seen)

    def leave(self):
        for phone, cipher in zip(self.phones, (XCHACHA, AES, None)):
            body = phone.unsubscribe()
            told = self.by_onion("/unsubscribe", body, cipher) if cipher else self.door.plain("/unsubscribe", body)
            expect((told.get("success"), told.get("removed")), (True, True), "the way out")
        stranger = Phone(Account(USER))
        told = self.by_onion("/unsubscribe", stranger.unsubscribe(), AES)
        expect((told.get("success"), told.get("removed")), (True, False), "the way out of one who was never in")


def device(folder):
    with network() as swarm, relay(folder, *swarm.settings) as run:
        talk = Talk(run, swarm)
        talk.subscribe()
        talk.refusals()
        opened = talk.pushes()
        talk.leave()
    return None, f"{len(talk.phones)} subscriptions of users, groups and members in {len(SPELLINGS)} spellings, " \
        f"{talk.replies} onion replies of two ciphers and {opened} pushes opened"


ROWS = [("PyNaCl as a Session device", device)]
