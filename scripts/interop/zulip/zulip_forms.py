"""A row in which foreign code is the server of one realm whose phones registered in all three forms: by token id
(12.x), by account id (11.x), and as the specification alone has it (zap). Written from the protocol's description.
"""
import base64
import contextlib
import json
import secrets
import sqlite3
import time
import uuid

from nacl.public import PrivateKey, PublicKey, SealedBox

from tools import Failed, expect, need_modules, relay
from .conversation import message, removal
from .zulip_peer import BUNDLE, Door, Phone, Server, Services, answered, b64, must_not_open

LARGEST = 2**63 - 1
# Where a double loses the last digit, and where signed integers end.
ACCOUNTS = [2**53 + 1, LARGEST, -2**63, 2**53]
DAY_SECONDS = 86_400
STALE_DAYS = 14
STALE_PATH = "push/e2ee/stale_devices"
MESSAGE_APS = {"mutable-content": 1, "alert": {"title": "New notification"}, "sound": "default"}
REMOVAL_APS = {"mutable-content": 1}


class AccountPhone(Phone):
    """A phone with an account id. Content for it is sealed to `pair` (zap), or under `key` (11.x)."""

    def __init__(self, kind, account_id, form):
        super().__init__(kind, 7)
        self.account_id, self.form, self.device_id = account_id, form, None
        self.pair = PrivateKey.generate()

    def blob(self, bouncer_key, **changes):
        """As the document writes it: a date, and no app. 11.x's client writes seconds and the app."""
        if self.form == "v11":
            return self.register(bouncer_key, **changes)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.123456789Z", time.gmtime())
        plain = {"token_kind": self.kind, "token": self.token, "timestamp": stamp, **changes}
        return b64(SealedBox(PublicKey(base64.b64decode(bouncer_key))).encrypt(json.dumps(plain).encode()))

    def seal(self, content):
        plain = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
        return b64(SealedBox(self.pair.public_key).encrypt(plain))

    def open_content(self, text):
        return json.loads(SealedBox(self.pair).decrypt(base64.b64decode(text, validate=True)))


class FormsServer(Server):
    """A server that speaks each phone's own form."""

    def join(self, phone, blob=None, **changes):
        form = {"realm_uuid": self.realm, "push_account_id": str(phone.account_id),
                "encrypted_push_registration": blob or phone.blob(self.bouncer_key),
                "bouncer_public_key": self.bouncer_key, **changes}
        form = {name: value for name, value in form.items() if value is not None}
        return self.door.ask("POST", "push/e2ee/register", auth=self.auth, form=form)

    def account_item(self, phone, content):
        if phone.form == "v11":
            aps = REMOVAL_APS if content["type"] == "remove" else MESSAGE_APS
            item = self.item(phone, content, aps if phone.kind == "apns" else None)
            del item["token_id"], item["payload"]["push_key_id"]
            item["payload"]["push_account_id"] = phone.account_id
        else:
            priority = "low" if content["type"] == "remove" else "high"
            item = {"encrypted_content": phone.seal(content), "priority": priority}
        return {"device_id": phone.device_id, **item}

    def stale(self, **query):
        fields = "&".join(f"{name}={value}" for name, value in query.items())
        return self.door.ask("GET", f"{STALE_PATH}?{fields}", auth=self.auth)


class Forms:
    """The conversation; counts its calls."""

    def __init__(self, run):
        self.calls = 0
        door = Door(run["urls"]["public"])
        self.services = Services(run["urls"]["sandbox-control"])
        key = run["public_keys"]["zulip-main"][0]
        self.server, self.other = (
            FormsServer(door, key, f"forms-{secrets.token_hex(4)}.example.org") for _ in range(2))
        kinds = [(kind, form) for form in ("v11", "zap") for kind in ("apns", "fcm")]
        self.phones = [AccountPhone(kind, account, form) for (kind, form), account in zip(kinds, ACCOUNTS)]
        self.tokens = [Phone("apns", 7), Phone("fcm", 7)]

    def at(self, run):
        """The same parties at the relay's new addresses."""
        self.server.door = self.other.door = Door(run["urls"]["public"])
        self.services = Services(run["urls"]["sandbox-control"])
        return self

    def step(self, answer, status, what, code=None):
        self.calls += 1
        return answered(answer, status, what, code)

    def living(self):
        for server in (self.server, self.other):
            self.step(server.sign_up(), 200, "sign-up")
            self.step(server.analytics(), 200, "analytics")
        self.register()
        for content in (message(1, "żółw 🔔"), removal([1])):
            self.by_token(content)
            for form in ("v11", "zap"):
                self.by_account(form, content)
        self.refused_registrations()
        self.refused_items()
        self.foreign()
        self.deaths()

    def register(self):
        for phone in self.tokens:
            told = self.step(self.server.register(phone), 200, "register, 12.x")
            expect("device_id" in told, False, "a number for 12.x")
        for phone in self.phones:
            changes = {"token_kind": phone.kind} if phone.form == "zap" else {}
            told = self.step(self.server.join(phone, **changes), 200, f"register, {phone.form}")
            phone.device_id = told["device_id"]
            if type(phone.device_id) is not int or not 1 <= phone.device_id <= LARGEST:
                raise Failed(f"device_id is {phone.device_id!r}")
            again = self.step(self.server.join(phone), 200, "the retry of one whose answer was lost")
            expect(again["device_id"], phone.device_id, "the retry's number")
        numbers = sorted(phone.device_id for phone in self.phones)
        expect(len(set(numbers)), len(numbers), "numbers of devices")
        if any(after - before < 1_000 for before, after in zip(numbers, numbers[1:])):
            raise Failed("the numbers are counted")
        # One registration in another realm is another row, and tells nothing of the first.
        captured = self.phones[0].blob(self.server.bouncer_key)
        told = self.step(self.other.join(self.phones[0], captured), 200, "a blob in a second realm")
        self.foreign_id = told["device_id"]
        expect(self.foreign_id == self.phones[0].device_id, False, "the second realm's number is the first's")

    def told(self, items, apple, android, dead, what, server=None, key="delete_device_ids"):
        told = self.step((server or self.server).notify(items), 200, what)
        expect((told["apple_successfully_sent_count"], told["android_successfully_sent_count"], sorted(told[key])),
               (apple, android, sorted(dead)), what)
        expect({"delete_device_ids", "delete_token_ids"} & told.keys(), {key}, f"{what}: lists of dead ids")

    def arrived(self, kind):
        [found] = self.services.arrived("production" if kind == "apns" else "fcm", 1)
        return found, found["json"] if kind == "apns" else found["json"]["message"]["data"]

    def by_token(self, content):
        """As a server that gives no `aps`, with a phone of each kind in one call."""
        self.told([self.server.item(phone, content) for phone in self.tokens], 1, 1, [], "12.x",
                  key="delete_token_ids")
        for phone in self.tokens:
            found, body = self.arrived(phone.kind)
            expect(found["token"].lower(), phone.token.lower(), "12.x: the token")
            expect(phone.open(body["encrypted_data"]), content, "what a phone of 12.x opened")
            if phone.kind == "apns":
                expect("mutable-content" in body["aps"], True, "the aps that 12.x left to the relay")

    def by_account(self, form, content):
        phones = [phone for phone in self.phones if phone.form == form]
        removes = content["type"] == "remove"
        self.told([self.server.account_item(phone, content) for phone in phones], 1, 1, [], form)
        member = "encrypted_data" if form == "v11" else "encrypted_content"
        for phone, stranger in zip(phones, reversed(phones)):
            found, body = self.arrived(phone.kind)
            apple = phone.kind == "apns"
            expect(body["push_account_id"], phone.account_id if apple else str(phone.account_id), f"{form}: the id")
            opens = phone.open if form == "v11" else phone.open_content
            expect(opens(body[member]), content, f"what a phone of {form} opened")
            if form == "v11":
                must_not_open(stranger, body[member])
            expect(found["priority"], 5 if removes else 10, f"{form}: priority")
            expect(body.keys(), {"push_account_id", member} | ({"aps"} if apple else set()), f"{form}: members")
            if apple:
                expect((found["topic"], found["pushType"]), (BUNDLE, "background" if removes else "alert"), form)
                silent = {"content-available": 1} if form == "zap" else REMOVAL_APS
                expect(body["aps"], silent if removes else MESSAGE_APS, f"{form}: aps")

    def refused_registrations(self):
        server, phone = self.server, AccountPhone("apns", 5, "zap")
        key = server.bouncer_key
        day_ago = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() - DAY_SECONDS - 60))
        told = self.step(server.join(phone, phone.blob(key, timestamp=day_ago)), 400, "an outdated blob",
                         "REQUEST_EXPIRED")
        expect(told["error_code"], "request_expired", "the document's spelling")
        told = self.step(server.join(phone, bouncer_public_key=b64(secrets.token_bytes(32))), 400, "another's key",
                         "INVALID_BOUNCER_PUBLIC_KEY")
        expect(told["error_code"], "INVALID_BOUNCER_PUBLIC_KEY", "the document's spelling")
        self.step(server.join(phone, token_kind="fcm"), 400, "a kind that is not the blob's", "BAD_REQUEST")
        for text in ("007", "+5", "-0", "5.0", "1e3", "0x10", " 5", "", '"5"', str(2**63), str(-2**63 - 1)):
            self.step(server.join(phone, push_account_id=text), 400, f"push_account_id {text!r}", "BAD_REQUEST")
        told = self.step(server.join(phone, push_account_id=None), 400, "no id", "REQUEST_VARIABLE_MISSING")
        expect(told["var_name"], "token_id", "what is missing")
        for text in ("2026-01-01 00:00:00Z", "2026-01-01T00:00:00", "2026-02-30T00:00:00Z", "2026-01-01", None):
            self.step(server.join(phone, phone.blob(key, timestamp=text)), 400, f"timestamp {text!r}", "BAD_REQUEST")
        self.step(server.join(phone, realm_uuid=self.other.realm), 403, "another's realm",
                  "REMOTE_REALM_SERVER_MISMATCH_ERROR")

    def refused_items(self):
        """One item of a wrong or of a second form refuses its call, and nothing is sent."""
        v11, zap = (next(phone for phone in self.phones if phone.form == form) for form in ("v11", "zap"))
        content = message(2, "not sent")
        good, sealed = self.server.account_item(v11, content), self.server.account_item(zap, content)
        by_token = self.server.item(self.tokens[0], content)
        wrong = [[good, sealed], [sealed, by_token], [by_token, good],
                 [{**sealed, "payload": good["payload"]}], [{**sealed, "token_id": by_token["token_id"]}],
                 *([sealed, {**sealed, "device_id": odd}] for odd in (5.0, "5", None, 2**63, -2**63 - 1)),
                 *([sealed, {**sealed, "priority": odd}] for odd in ("normal", 10, None)),
                 *([sealed, {**sealed, "encrypted_content": odd}] for odd in ("", "A", "AA", "AAA=\n", "A" * 3804, 1)),
                 [good, {**good, "payload": {**good["payload"], "push_account_id": str(v11.account_id)}}],
                 [sealed] * 1001]
        for items in wrong:
            self.step(self.server.notify(items), 400, f"items {str(items)[:200]}", "BAD_REQUEST")
        self.nothing_arrived()

    def nothing_arrived(self):
        """A push behind them is the next that arrives."""
        for phone in self.phones[:2]:
            said = message(3, secrets.token_hex(8))
            apple = phone.kind == "apns"
            self.told([self.server.account_item(phone, said)], int(apple), int(not apple), [], "the next push")
            _, body = self.arrived(phone.kind)
            expect(phone.open(body["encrypted_data"]), said, "what came next")

    def foreign(self):
        """Ids of nobody, of another server's realm and of no possible device look alike; the others are sent."""
        phone = self.phones[2]
        nobody = [self.foreign_id, 0, -1, LARGEST, -2**63, 2**53 + 1]
        item = self.server.account_item(phone, message(4, "for one"))
        items = [item] + [{**item, "device_id": number} for number in nobody + nobody]
        self.told(items, 1, 0, nobody, "six ids of nobody, twice")
        self.arrived("apns")
        told = [self.step(self.server.notify([{**item, "device_id": number}]), 200, "one id of nobody")
                for number in (self.foreign_id, LARGEST)]
        for answer in told:
            del answer["delete_device_ids"]
        expect(told[0], told[1], "a foreign id's answer beside an unknown one's")

    def deaths(self):
        """Both ways to die; the server hears of it once and again, until the phone registers anew."""
        for phone in self.phones:
            name, gone = ("production", "expired") if phone.kind == "apns" else ("fcm", "removed")
            self.services.set_device(name, phone, gone)
            for _ in range(2):
                self.told([self.server.account_item(phone, message(5, secrets.token_hex(8)))], 0, 0,
                          [phone.device_id], f"a dead token at {name}")
        phone = next(phone for phone in self.phones if phone.form == "v11")
        before = phone.blob(self.server.bouncer_key, timestamp=int(time.time()) - 3_600)
        told = self.step(self.server.join(phone, before), 200, "a registration of before the death")
        expect(told["device_id"], phone.device_id, "its number")
        self.told([self.server.account_item(phone, message(5, "still"))], 0, 0, [phone.device_id], "dead still")
        told = self.step(self.server.stale(realm_uuid=self.server.realm), 200, "the list on the day of the deaths")
        expect((told["device_ids"], told["next_after"]), ([], None), "the list on the day of the deaths")

    def stale_list(self):
        realm = self.server.realm
        wanted = sorted(phone.device_id for phone in self.phones)
        seen, after, pages = [], 0, 0
        while after is not None and pages < len(wanted):
            told = self.step(self.server.stale(realm_uuid=realm, after=after, limit=2), 200, "a page of the list")
            seen, after, pages = seen + told["device_ids"], told["next_after"], pages + 1
            expect(after in (None, seen[-1]), True, "next_after is the page's last")
        expect((seen, pages), (wanted, 2), "the list")
        told = self.step(self.server.stale(realm_uuid=realm, after=LARGEST), 200, "a page behind the last")
        expect((told["device_ids"], told["next_after"]), ([], None), "a page behind the last")
        # 12.x's rows are found by token id, and stand in no list.
        told = self.step(self.other.stale(realm_uuid=self.other.realm), 200, "the other realm's list")
        expect(told["device_ids"], [], "the other realm's list")
        self.step(self.other.stale(realm_uuid=realm), 403, "another's list", "REMOTE_REALM_SERVER_MISMATCH_ERROR")
        # The server's own id is no realm's; what is no UUID is none of any server.
        for nobody in (uuid.uuid4(), self.server.id):
            self.step(self.server.stale(realm_uuid=nobody), 403, "the list of nobody's realm", "MISSING_REMOTE_REALM")
        for text in ("", "chat", realm[:-1]):
            self.step(self.server.stale(realm_uuid=text), 400, f"the list of the realm {text!r}", "BAD_REQUEST")
        told = self.step(self.server.stale(), 400, "no realm", "REQUEST_VARIABLE_MISSING")
        expect(told["var_name"], "realm_uuid", "what is missing")
        for query in ({"limit": 0}, {"limit": 1001}, {"limit": "2.0"}, {"after": -1}, {"after": 2**63},
                      {"after": "007"}, {"after": ""}):
            self.step(self.server.stale(realm_uuid=realm, **query), 400, f"{query}", "BAD_REQUEST")
        posted = self.server.door.ask("POST", f"{STALE_PATH}?realm_uuid={realm}", auth=self.server.auth)
        self.step(posted, 405, "another method")

    def revive(self):
        """A newer registration brings a phone back under its old number, and off the list."""
        phone = next(phone for phone in self.phones if phone.form == "v11" and phone.kind == "fcm")
        said = message(6, "back")
        self.services.set_device("fcm", phone, "live")
        told = self.step(self.server.join(phone), 200, "a registration behind the death")
        expect(told["device_id"], phone.device_id, "its number")
        self.told([self.server.account_item(phone, said)], 0, 1, [], "a push behind the return")
        _, body = self.arrived("fcm")
        expect(phone.open(body["encrypted_data"]), said, "what came after the return")
        told = self.step(self.server.stale(realm_uuid=self.server.realm), 200, "the list after a return")
        expect(phone.device_id in told["device_ids"], False, "who came back stands in the list")


def age(folder, days):
    """Lets all that has expired have done so so many days earlier. The relay is not running."""
    with contextlib.closing(sqlite3.connect(folder / "state" / "relay.sqlite")) as store, store:
        changed = store.execute("UPDATE records SET state_at = state_at - ? WHERE state = 1",
                                (days * DAY_SECONDS * 1_000,)).rowcount
    expect(changed, len(ACCOUNTS), "rows that expired")


def forms(folder):
    need_modules("nacl", "requests")
    with relay(folder) as run:
        talk = Forms(run)
        talk.living()
    age(folder, STALE_DAYS)
    with relay(folder) as run:
        talk.at(run).stale_list()
        talk.revive()
    return None, f"{talk.calls} calls in three forms, two realms and two runs, sealed and opened by PyNaCl"


ROWS = [("Python as server of three forms", forms)]
