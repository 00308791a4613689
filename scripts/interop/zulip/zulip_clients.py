"""A row in which foreign code is the phone at our origin, in the form of the specification (zap): it follows events,
opens what the push services got, repeats, changes its token, forgets and is restored. What phones of all forms share
stands here too. Written from the protocol's description.
"""
import base64
import contextlib
import json
import pathlib
import secrets
import subprocess
import time

import requests
from nacl.public import PrivateKey

from tools import SEALBELL, Failed, expect, free_port, need_modules, relay, running
from .zulip_forms import DAY_SECONDS, MESSAGE_APS, AccountPhone
from .zulip_peer import Services, answered, b64, stranger_key

USER = "ada@example.com"
CODE = "INVALID_BOUNCER_PUBLIC_KEY"
EXPIRED = "REQUEST_EXPIRED"
EVENTS_SECONDS = 20
# What a content is padded to, in every form.
SIZES = (512, 1_024, 2_048, 2_688)
MESSAGE_MEMBERS = {"realm_name": str, "message_id": int, "time": int, "sender_id": int, "sender_full_name": str,
                   "sender_avatar_url": str, "recipient_type": str, "recipient_user_ids": list}
# A point of low order: no box sealed to it is closed to anybody.
WEAK_KEY = b64(bytes(32))


@contextlib.contextmanager
def origin(folder, state, *settings):
    """An origin beside the sandbox that serves from `state`; yields its URL, its user's key and its own state."""
    port, place = free_port(), state / "origin"
    command = [SEALBELL, "origin", "--at", str(state)]
    for setting in (f"listeners.origin.bind=127.0.0.1:{port}", "listeners.admin.bind=127.0.0.1:0",
                    f"origin.url=http://127.0.0.1:{port}", *settings):
        command += ["--set", setting]
    log = folder / "origin.log"
    with running(command, folder, lambda: "device zulip join" in log.read_text(), "origin.log",
                 absent=Failed) as process:
        yield f"http://127.0.0.1:{port}", (place / f"{USER.split('@')[0]}.key").read_text().strip(), place
    expect(process.returncode, 0, "the origin's end")


class Client:
    """One client of a user: its calls, and the state that fetch and events have made."""

    def __init__(self, url, key, user=USER):
        self.url, self.calls = url, 0
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.auth = (user, key)
        self.user_id = self("GET", "users/me")["user_id"]
        self.begin()

    def ask(self, method, path, **form):
        self.calls += 1
        fields = {"params" if method == "GET" else "data": form}
        return self.session.request(method, f"{self.url}/api/v1/{path}", timeout=EVENTS_SECONDS + 10,
                                    allow_redirects=False, **fields)

    def __call__(self, method, path, status=200, code=None, **form):
        return answered(self.ask(method, path, **form), status, f"{method} {path} {sorted(form)}", code)

    def fetch(self):
        told = self("POST", "register")
        return told, {name: told[name] for name in ("push_account_ids", "devices", "push_devices")}

    def begin(self):
        told, self.state = self.fetch()
        self.queue, self.last = told["queue_id"], told["last_event_id"]

    def next(self, count, what):
        """The next `count` events, heartbeats apart, applied to the state; then it must be what a fetch gives."""
        ends, found = time.monotonic() + EVENTS_SECONDS, []
        while len(found) < count:
            if time.monotonic() > ends:
                raise Failed(f"{what}: {found} within {EVENTS_SECONDS} s")
            for event in self("GET", "events", queue_id=self.queue, last_event_id=self.last)["events"]:
                expect(event["id"] > self.last, True, "ids of events rise")
                self.last = event.pop("id")
                if event["type"] != "heartbeat":
                    found.append(event)
                    self.apply(event)
        expect(len(found), count, f"{what}: {found}")
        expect(self.fetch()[1], self.state, f"{what}: events beside a fetch")
        return found

    def quiet(self, what):
        for event in self("GET", "events", queue_id=self.queue, last_event_id=self.last, dont_block="true")["events"]:
            self.last = event["id"]
            expect(event["type"], "heartbeat", f"{what}: an event")
        expect(self.fetch()[1], self.state, what)

    def apply(self, event):
        if event["type"] == "push_account":
            entries, name = self.state["push_account_ids"], str(event["push_account_id"])
            if event["op"] != "remove":
                entries[name] = {"status": event["status"]}
            elif "error_code" in event:
                entries[name] = {"status": "failed", "error_code": event["error_code"]}
            else:
                del entries[name]
        elif event["type"] == "push_device":
            expect("error_code" in event, event["status"] == "failed", f"a code in {event}")
            self.state["push_devices"][str(event["push_account_id"])] = {
                "status": event["status"], "error_code": event.get("error_code")}
        elif event["type"] == "device":
            entries, name = self.state["devices"], str(event["device_id"])
            if event["op"] == "add":
                entries[name] = dict.fromkeys(
                    ("push_key_id", "push_token_id", "pending_push_token_id", "push_token_last_updated_timestamp",
                     "push_registration_error_code"))
            elif event["op"] == "remove":
                del entries[name]
            else:
                changed = {key: value for key, value in event.items() if key not in ("type", "op", "device_id")}
                expect(changed.keys() <= entries[name].keys(), True, f"members of {event}")
                entries[name].update(changed)
        elif event["type"] != "realm":
            raise Failed(f"an event {event}")


class Stage:
    """Relay, push services and origin, the operator's commands, and one client of the user."""

    def __init__(self, run, url, key, place):
        self.bouncer_key = run["public_keys"]["zulip-main"][0]
        self.services = Services(run["urls"]["sandbox-control"])
        self.place, self.url, self.key = place, url, key
        self.client = Client(url, key)
        [realm] = self.operator("realm", "list")["realms"]
        self.realm = realm["name"]

    @contextlib.contextmanager
    def scene(self, what):
        """Behind a scenario, nothing has been delivered but what it looked at."""
        yield
        self.services.nothing_more(what)

    def operator(self, *words):
        told = subprocess.run([SEALBELL, "origin", *words, "--at", str(self.place), "--json"], capture_output=True,
                              text=True, timeout=60)
        expect((told.returncode, told.stderr), (0, ""), " ".join(words[:2]))
        return json.loads(told.stdout)

    def settled(self, what):
        """Waits until the relay has answered all that the origin owes it about registrations."""
        ends = time.monotonic() + EVENTS_SECONDS
        while any("waiting_since" in each
                  for each in self.operator("registrations", "list", USER)["registrations"]):
            if time.monotonic() > ends:
                raise Failed(f"{what}: a registration still waits after {EVENTS_SECONDS} s")
            time.sleep(0.1)

    def notify(self, phones, what, dead=()):
        """A text to the user; each phone opens its own, and nobody else gets any, the dead ones too.

        Returns the id by which the operator may take it back, and that by which phones know it.
        """
        said = f"żółw 🔔 {secrets.token_hex(6)}"
        told = self.operator("notify", USER, said)
        expect(told["devices"], len(phones) + len(dead), f"{what}: devices")
        numbers = set()
        for content in self.opened(phones, what):
            expect((content["type"], content["content"]), ("message", said), what)
            for name, kind in MESSAGE_MEMBERS.items():
                expect(type(content[name]), kind, f"{what}: the member {name}")
            expect(content["recipient_user_ids"], [self.client.user_id], f"{what}: recipients")
            numbers.add(content["message_id"])
        expect(len(numbers) <= 1, True, f"{what}: numbers of one message")
        return told["id"], numbers

    def opened(self, phones, what, is_loud=True, quiet_aps=None):
        """What each of the phones got, in order of the phones; it names this realm and user.

        What is to be seen wakes the phone, and a removal is silent, with `quiet_aps` at Apple.
        """
        bodies = {}
        for kind, name in (("apns", "production"), ("fcm", "fcm")):
            for each in self.services.arrived(name, sum(phone.kind == kind for phone in phones)):
                body = each["json"] if kind == "apns" else each["json"]["message"]["data"]
                bodies[each["token"].lower()] = body
                expect(each["priority"], 10 if is_loud else 5, f"{what}: priority")
                if kind == "apns":
                    expect((each["pushType"], body["aps"]),
                           ("alert", MESSAGE_APS) if is_loud else ("background", quiet_aps), f"{what}: at Apple")
        expect(sorted(bodies), sorted(phone.token.lower() for phone in phones), f"{what}: tokens")
        contents = [phone.open_delivered(bodies[phone.token.lower()]) for phone in phones]
        for content in contents:
            expect((content["realm_url"], content["user_id"]), (self.url, self.client.user_id), what)
        return contents

    def removal(self, phones, quiet_aps):
        """A text that is taken back, and one of nobody with it."""
        name, numbers = self.notify(phones, "a text to be taken back")
        told = self.operator("withdraw", USER, name, "f" * 32)
        expect(told["devices"], len(phones), "a removal: devices")
        for content in self.opened(phones, "a removal", False, quiet_aps):
            expect((content["type"], len(content["message_ids"]), numbers <= set(content["message_ids"])),
                   ("remove", 2, True), "a removal")

    def requirement(self):
        """A realm that sends nothing unencrypted: clients hear of it when it changes, and see it in the state."""
        for word, value in (("on", True), ("off", False)):
            for _ in range(2):
                self.operator("realm", "set", self.realm, "--require-e2ee", word)
            expect(self.client.next(1, "a requirement"), [
                {"type": "realm", "op": "update", "property": "require_e2ee_push_notifications", "value": value}],
                "a requirement")
            expect(self.client.fetch()[0]["realm_require_e2ee_push_notifications"], value, "a requirement")
        self.client.quiet("a requirement that stands")

    def tests(self, phones, name):
        """A test notification for each alone and for all; for one that is not there it is refused.

        `name` is the parameter that names a device, and `test_id` of a phone its value.
        """
        path = "mobile_push/e2ee/test_notification"
        for some in [[phone] for phone in phones] + [phones]:
            begun = int(time.time())
            form = {name: str(some[0].test_id)} if some is not phones else {}
            self.client("POST", path, **form)
            for content in self.opened(some, "a test notification"):
                expect((content["type"], begun <= content["time"] <= time.time()), ("test", True), "a test's content")
        self.client("POST", path, 400, "NO_ACTIVE_PUSH_DEVICE", **{name: "424242"})
        self.client("POST", path, 400, "BAD_REQUEST", **{name: "042"})
        self.client("POST", path, 400, "BAD_REQUEST", device_id="1", push_account_id="1")

    def settings(self):
        bare = requests.get(self.url + "/api/v1/server_settings", timeout=10).json()
        expect((bare["zulip_feature_level"], bare["encrypted_push_notifications"], bare["realm_url"]),
               (483, True, self.url), "server_settings")
        for path in ("apns_device_token", "android_gcm_reg_id"):
            self.client("POST", "users/me/" + path, 400, "BAD_REQUEST", token="ab")

    def strangers(self):
        """Without the user's own key nothing is shown and nothing changes, and no word says which half was wrong."""
        told = set()
        for auth in ((USER, self.key[:-1] + ("a" if self.key[-1] != "a" else "b")), ("eve@example.com", self.key),
                     (USER, ""), (USER.upper() + "x", self.key)):
            for method, path in (("POST", "register"), ("GET", "events"), ("POST", "mobile_push/register"),
                                 ("POST", "mobile_push/forget"), ("POST", "register_client_device")):
                answer = requests.request(method, f"{self.url}/api/v1/{path}", auth=auth, timeout=10)
                answered(answer, 401, f"{path} with another key", "INVALID_API_KEY")
                expect(answer.headers.get("WWW-Authenticate"), 'Basic realm="zulip"', "what to come with")
                told.add(answer.text)
        expect(len(told), 1, "answers to a user that is none and to a key that is wrong")
        answered(requests.post(self.url + "/api/v1/register", timeout=10), 401, "no credentials", "UNAUTHORIZED")
        self.client.quiet("strangers")

    def lost_queue(self, happens):
        """A queue that was deleted, and one that never was, is unknown; a fresh one begins with the state of then,
        and what happened in between is no event any more.
        """
        client = self.client
        former = client.queue
        client("DELETE", "events", queue_id=former)
        happens()
        for name in (former, "0" * len(former), "x"):
            client("GET", "events", 400, "BAD_EVENT_QUEUE_ID", queue_id=name, last_event_id=client.last)
            client("DELETE", "events", 400, "BAD_EVENT_QUEUE_ID", queue_id=name)
        before = client.state
        self.settled("in between")
        client.begin()
        expect((client.queue == former, client.state == before), (False, False), "a fresh queue")
        client.quiet("a fresh queue")


def padded(text, overhead):
    """Checks the size of a content that was sealed with so many bytes more."""
    expect(len(base64.b64decode(text, validate=True)) - overhead in SIZES, True, "the content's padding")
    return text


class ZapPhone(AccountPhone):
    def __init__(self, kind, account_id=None):
        super().__init__(kind, account_id or secrets.randbelow(2**63 - 1) + 1, "zap")

    @property
    def test_id(self):
        return self.account_id

    def open_delivered(self, body):
        number = self.account_id if self.kind == "apns" else str(self.account_id)
        expect(body["push_account_id"], number, "the account's id")
        return self.open_content(padded(body["encrypted_content"], 48))

    def fields(self, bouncer_key, **changes):
        return {"push_account_id": str(self.account_id), "encrypted_push_registration": self.blob(bouncer_key),
                "bouncer_public_key": bouncer_key, "push_public_key": b64(bytes(self.pair.public_key)),
                "token_kind": self.kind, **changes}


def become_active(client, phone, bouncer_key):
    client("POST", "mobile_push/register", **phone.fields(bouncer_key))
    expect([(each["op"], each["push_account_id"], each["status"]) for each in client.next(2, "an account")],
           [("add", phone.account_id, "pending"), ("update", phone.account_id, "active")], "an account's events")


def outdated(phone, bouncer_key):
    """A blob of two days ago."""
    return phone.blob(bouncer_key, timestamp=int(time.time()) - 2 * DAY_SECONDS)


def removed(client, phone, what, **members):
    [gone] = client.next(1, what)
    expect(gone, {"type": "push_account", "op": "remove", "push_account_id": phone.account_id, **members}, what)


def refused(client, phone, key):
    """What is refused changes nothing, and whoever forgets what is not there has nothing to wait for."""
    good = phone.fields(key)
    for text in ("007", "+5", "-0", "5.0", "", str(2**63), str(-2**63 - 1)):
        client("POST", "mobile_push/register", 400, "BAD_REQUEST", **{**good, "push_account_id": text})
        client("POST", "mobile_push/forget", 400, "BAD_REQUEST", push_account_id=text)
    for mark in ({"push_key": phone.push_key}, {"device_id": "1"}, {"token_id": phone.token_id}, {"push_key_id": "1"},
                 {"push_public_key": WEAK_KEY}, {"push_public_key": "AA=="}, {"token_kind": "hms"},
                 {"encrypted_push_registration": "A" * 16388}, {"bouncer_public_key": "x" * 129}):
        client("POST", "mobile_push/register", 400, "BAD_REQUEST", **{**good, **mark})
    for name in ("encrypted_push_registration", "bouncer_public_key", "push_public_key", "token_kind"):
        form = {each: value for each, value in good.items() if each != name}
        if name != "push_public_key":  # Without it and without `push_key` it has no form.
            told = client("POST", "mobile_push/register", 400, "REQUEST_VARIABLE_MISSING", **form)
            expect(told["var_name"], name, "what is missing")
    client("POST", "mobile_push/forget", 400, "REQUEST_VARIABLE_MISSING")
    for number in (phone.account_id, 0, -1, -2**63, 2**63 - 1):
        client("POST", "mobile_push/forget", push_account_id=str(number))
    client("POST", "mobile_push/e2ee/test_notification", 400, "NO_ACTIVE_PUSH_DEVICE")
    client.quiet("what was refused")


def zap(stage):
    client, key = stage.client, stage.bouncer_key
    first, other = ZapPhone("apns", 2**53 + 1), ZapPhone("fcm", -2**63)
    with stage.scene("refusals"):
        stage.settings()
        stage.strangers()
        refused(client, first, key)
    with stage.scene("two phones"):
        for phone in (first, other):
            become_active(client, phone, key)
        stage.notify([first, other], "a text")
        stage.tests([first, other], "push_account_id")
        stage.removal([first, other], {"content-available": 1})
    with stage.scene("a requirement"):
        stage.requirement()
    with stage.scene("monthly repeats"):
        monthly(stage, first, other)
    with stage.scene("another token"):
        changed = another_token(stage, first, other)
    with stage.scene("relay's refusals"):
        lost = refused_by_relay(stage, changed, other)
    with stage.scene("a lost queue"):
        between = ZapPhone("apns")
        stage.lost_queue(lambda: client("POST", "mobile_push/register", **between.fields(key)))
        expect(client.state["push_account_ids"][str(between.account_id)], {"status": "active"}, "in between")
        client("POST", "mobile_push/forget", push_account_id=str(between.account_id))
        removed(client, between, "forgotten")
    with stage.scene("a dead token"):
        stage.services.set_device("fcm", other, "removed")
        stage.notify([changed], "one of two is dead", dead=[other])
        removed(client, other, "a dead token")
    # Restored from a backup without its marker: new id, keys and token, and nothing forgotten for the other.
    with stage.scene("a restore"):
        restored = ZapPhone("fcm")
        become_active(client, restored, key)
        stage.notify([changed, restored], "after a restore")
    with stage.scene("logout"):
        for phone in (changed, restored, lost):
            client("POST", "mobile_push/forget", push_account_id=str(phone.account_id))
        client.next(3, "logout")
        expect(client.state["push_account_ids"], {}, "after logout")
        stage.notify([], "nobody is left")


def monthly(stage, first, other):
    """The same id with a fresh blob, and perhaps other keys; one whose repeat comes late stays."""
    client, key = stage.client, stage.bouncer_key
    client("POST", "mobile_push/register", **first.fields(key))
    stage.notify([first, other], "a text beside a repeat")
    first.pair = PrivateKey.generate()
    client("POST", "mobile_push/register", **first.fields(key))
    stage.settled("repeats")
    client.quiet("repeats")
    stage.notify([first, other], "a text behind a repeat with another pair")
    client("POST", "mobile_push/register", **first.fields(
        key, encrypted_push_registration=outdated(first, key)))
    stage.settled("a repeat that was outdated")
    client.quiet("a repeat that was outdated")
    stage.notify([first, other], "a text behind an outdated repeat")


def another_token(stage, first, other):
    """A fresh id, the same pair; the old one goes when the new one is active."""
    client = stage.client
    changed = ZapPhone("apns")
    changed.pair = first.pair
    become_active(client, changed, stage.bouncer_key)
    for _ in range(2):
        client("POST", "mobile_push/forget", push_account_id=str(first.account_id))
    removed(client, first, "the old id")
    stage.notify([changed, other], "after another token")
    return changed


def refused_by_relay(stage, *living):
    """The note stays, and ends with the next registration of its id; another id is as good as ever."""
    client, key = stage.client, stage.bouncer_key
    late = ZapPhone("apns")
    client("POST", "mobile_push/register", **late.fields(key, encrypted_push_registration=outdated(late, key)))
    client.next(2, "an outdated blob")
    expect(client.state["push_account_ids"][str(late.account_id)], {"status": "failed", "error_code": EXPIRED},
           "an outdated blob")
    become_active(client, late, key)
    # Refused for its key, an active one goes too.
    client("POST", "mobile_push/register", **late.fields(stranger_key()))
    removed(client, late, "a repeat with another relay's key", error_code=CODE)
    lost = ZapPhone("fcm")
    client("POST", "mobile_push/register", **lost.fields(stranger_key()))
    expect(client.next(2, "another relay's key")[1],
           {"type": "push_account", "op": "remove", "push_account_id": lost.account_id, "error_code": CODE},
           "another relay's key")
    client("POST", "mobile_push/forget", push_account_id=str(late.account_id))
    removed(client, late, "a note")
    stage.notify(living, "beside what was refused")
    return lost


@contextlib.contextmanager
def two_processes(folder):
    with relay(folder) as served, origin(folder, folder / "state") as (url, key, place):
        yield served, url, key, place


@contextlib.contextmanager
def one_process(folder, *settings):
    """A relay with an origin in it; what `sealbell origin --at` does by itself is the operator's here."""
    port, place = free_port(), folder / "state"
    url = f"http://127.0.0.1:{port}"

    def operator(*words):
        told = subprocess.run([SEALBELL, "origin", *words, "--at", str(place), "--json"], capture_output=True,
                              text=True, timeout=60)
        expect(told.returncode, 0, f"{words[0]}: {told.stderr}")
        return json.loads(told.stdout)

    with relay(folder, f"listeners.origin.bind=127.0.0.1:{port}", f"origin.url={url}", *settings) as served:
        operator("sign-up")
        operator("realm", "add", "chat")
        yield served, url, operator("user", "add", USER)["key"], place


def row(talk, serving):
    def run(folder):
        need_modules("nacl", "requests")
        with serving(pathlib.Path(folder)) as (served, url, key, place):
            stage = Stage(served, url, key, place)
            talk(stage)
            return None, f"{stage.client.calls} calls as described, events as fetched, opened by PyNaCl"
    return run


def rows(form, talk):
    title = "Python as phone of our origin, " + form
    return [(title, row(talk, two_processes)), (title + ", one process", row(talk, one_process))]


ROWS = rows("zap", zap)
