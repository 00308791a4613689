"""Rows in which foreign code is the phone at our origin, in the form of the specification (zap) and that of 12.x: it
follows events, opens what the push services got, repeats, changes its token, forgets and is restored. Written from the
protocol's description.
"""
import contextlib
import json
import pathlib
import secrets
import subprocess
import time

import requests

from tools import SEALBELL, Failed, expect, free_port, need_modules, relay, running
from .zulip_forms import AccountPhone
from .zulip_peer import Phone, Services, answered, b64, must_not_open, stranger_key

USER = "ada@example.com"
CODE = "INVALID_BOUNCER_PUBLIC_KEY"
EVENTS_SECONDS = 20
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

    def __init__(self, url, key):
        self.url, self.calls = url, 0
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.auth = (USER, key)
        self.user_id = self("GET", "users/me")["user_id"]
        self.events = []
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
        return told, {name: told[name] for name in ("push_account_ids", "devices")}

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
        else:
            raise Failed(f"an event {event}")


class Stage:
    def __init__(self, run, url, key, place):
        self.bouncer_key = run["public_keys"]["zulip-main"][0]
        self.services = Services(run["urls"]["sandbox-control"])
        self.place, self.url = place, url
        self.client = Client(url, key)

    def notify(self, phones, what):
        """A text to the user; each phone opens its own, and nobody else gets any."""
        said = f"żółw 🔔 {secrets.token_hex(6)}"
        told = subprocess.run([SEALBELL, "origin", "notify", USER, said, "--at", str(self.place)],
                              capture_output=True, text=True, timeout=60)
        expect((told.returncode, told.stderr), (0, ""), what)
        for phone in phones:
            [found] = self.services.arrived("production" if phone.kind == "apns" else "fcm", 1)
            body = found["json"] if phone.kind == "apns" else found["json"]["message"]["data"]
            expect(found["token"].lower(), phone.token.lower(), f"{what}: the token")
            content = phone.open_delivered(body)
            expect((content["realm_url"], content["user_id"], content["content"]),
                   (self.url, self.client.user_id, said), what)
        return content if phones else None

    def settings(self):
        bare = requests.get(self.url + "/api/v1/server_settings", timeout=10).json()
        expect((bare["zulip_feature_level"], bare["encrypted_push_notifications"], bare["realm_url"]),
               (483, True, self.url), "server_settings")
        for path in ("apns_device_token", "android_gcm_reg_id"):
            self.client("POST", "users/me/" + path, 400, "BAD_REQUEST", token="ab")


class ZapPhone(AccountPhone):
    def __init__(self, kind, account_id=None):
        super().__init__(kind, account_id or secrets.randbelow(2**63 - 1) + 1, "zap")

    def open_delivered(self, body):
        number = self.account_id if self.kind == "apns" else str(self.account_id)
        expect(body["push_account_id"], number, "the account's id")
        return self.open_content(body["encrypted_content"])

    def fields(self, bouncer_key, **changes):
        return {"push_account_id": str(self.account_id), "encrypted_push_registration": self.blob(bouncer_key),
                "bouncer_public_key": bouncer_key, "push_public_key": b64(bytes(self.pair.public_key)),
                "token_kind": self.kind, **changes}


def become_active(client, phone, bouncer_key):
    client("POST", "mobile_push/register", **phone.fields(bouncer_key))
    expect([(each["op"], each["push_account_id"], each["status"]) for each in client.next(2, "an account")],
           [("add", phone.account_id, "pending"), ("update", phone.account_id, "active")], "an account's events")


def refused(client, phone, key):
    """What is refused changes nothing."""
    good = phone.fields(key)
    for text in ("007", "+5", "-0", "5.0", "", str(2**63), str(-2**63 - 1)):
        client("POST", "mobile_push/register", 400, "BAD_REQUEST", **{**good, "push_account_id": text})
    for mark in ({"push_key": phone.push_key}, {"device_id": "1"}, {"token_id": phone.token_id}, {"push_key_id": "1"},
                 {"push_public_key": WEAK_KEY}, {"push_public_key": "AA=="}, {"token_kind": "hms"},
                 {"encrypted_push_registration": "A" * 16388}, {"bouncer_public_key": "x" * 129}):
        client("POST", "mobile_push/register", 400, "BAD_REQUEST", **{**good, **mark})
    for name in ("encrypted_push_registration", "bouncer_public_key", "push_public_key", "token_kind"):
        form = {each: value for each, value in good.items() if each != name}
        if name != "push_public_key":  # Without it and without `push_key` it has no form.
            told = client("POST", "mobile_push/register", 400, "REQUEST_VARIABLE_MISSING", **form)
            expect(told["var_name"], name, "what is missing")
    client.quiet("what was refused")


def zap(stage):
    client, key = stage.client, stage.bouncer_key
    stage.settings()
    first, other = ZapPhone("apns", 2**53 + 1), ZapPhone("fcm", -2**63)
    refused(client, first, key)
    client("POST", "mobile_push/e2ee/test_notification", 400, "NO_ACTIVE_PUSH_DEVICE")
    for phone in (first, other):
        become_active(client, phone, key)
    stage.notify([first, other], "a text")
    client("POST", "mobile_push/register", **first.fields(key))
    stage.notify([first, other], "a text beside a repeat")
    client.quiet("a repeat")
    # Another token: a fresh id, the same pair; the old one goes when the new one is active.
    changed = ZapPhone("apns")
    changed.pair = first.pair
    become_active(client, changed, key)
    for _ in range(2):
        client("POST", "mobile_push/forget", push_account_id=str(first.account_id))
    [gone] = client.next(1, "the old id")
    expect(gone, {"type": "push_account", "op": "remove", "push_account_id": first.account_id}, "the old id")
    stage.notify([changed, other], "after another token")
    # A build with a key that the relay has not: the note stays, and another id is as good as ever.
    lost = ZapPhone("fcm")
    client("POST", "mobile_push/register", **lost.fields(stranger_key()))
    events = client.next(2, "another relay's key")
    expect(events[1], {"type": "push_account", "op": "remove", "push_account_id": lost.account_id, "error_code": CODE},
           "another relay's key")
    # A token that its service refuses ends its entry.
    stage.services.set_device("fcm", other, "removed")
    stage.notify([changed], "one of two is dead")
    expect(client.next(1, "a dead token")[0]["op"], "remove", "a dead token")
    # Restored from a backup without its marker: new id, keys and token, and nothing forgotten for the other.
    restored = ZapPhone("fcm")
    become_active(client, restored, key)
    stage.notify([changed, restored], "after a restore")
    for phone in (changed, restored, lost):
        client("POST", "mobile_push/forget", push_account_id=str(phone.account_id))
    client.next(3, "logout")
    expect(client.state["push_account_ids"], {}, "after logout")


class DevicePhone(Phone):
    """12.x's client: a device at the server, a key and a token."""

    device_id = None

    def key_group(self):
        return {"push_key_id": str(self.key_id), "push_key": self.push_key}

    def token_group(self, bouncer_key):
        return {"token_kind": self.kind, "token_id": self.token_id, "bouncer_public_key": bouncer_key,
                "encrypted_push_registration": self.register(bouncer_key)}

    def open_delivered(self, body):
        expect(body["push_key_id"], self.key_id if self.kind == "apns" else str(self.key_id), "the key's id")
        return self.open(body["encrypted_data"])


def update(client, phone, status=200, code=None, **form):
    return client("POST", "mobile_push/register", status, code, device_id=str(phone.device_id), **form)


def v12(stage):
    client, key = stage.client, stage.bouncer_key
    phone, other = DevicePhone("apns", 7), DevicePhone("fcm", 7)
    for each in (phone, other):
        each.device_id = client("POST", "register_client_device")["device_id"]
        expect(client.next(1, "a device")[0]["op"], "add", "a device")
        update(client, each, 400, "BAD_REQUEST")
        update(client, each, 400, "BAD_REQUEST", **each.token_group(key))
        update(client, each, 400, "BAD_REQUEST", **each.key_group())
        update(client, each, 400, "BAD_REQUEST", push_public_key=b64(bytes(each.key)), **each.key_group())
        client.quiet("what was refused")
        update(client, each, **each.key_group(), **each.token_group(key))
        pending, active = client.next(2, "a registration")
        expect((pending["pending_push_token_id"], pending["push_key_id"]), (each.token_id, each.key_id), "pending")
        expect(active, {"type": "device", "op": "update", "device_id": each.device_id,
                        "push_token_id": each.token_id, "pending_push_token_id": None}, "active")
    stage.notify([phone, other], "a text")
    # The same again changes nothing; another key is the server's alone; another token goes to the relay.
    update(client, phone, **phone.key_group(), **phone.token_group(key))
    client.quiet("the same again")
    former = phone.key
    phone.key, phone.key_id = secrets.token_bytes(32), secrets.randbits(32)
    update(client, phone, **phone.key_group())
    expect(client.next(1, "another key")[0], {"type": "device", "op": "update", "device_id": phone.device_id,
                                              "push_key_id": phone.key_id}, "another key")
    stage.notify([phone, other], "after another key")
    expect(former != phone.key, True, "two keys")
    fresh = DevicePhone("apns", 7)
    phone.token, phone.token_id = fresh.token, fresh.token_id
    update(client, phone, **phone.token_group(key))
    client.next(2, "another token")
    stage.notify([phone, other], "after another token")
    # Refused: the code stays at the device, and a good registration clears it.
    update(client, other, **DevicePhone("fcm", 7).token_group(stranger_key()))
    expect(client.next(2, "another relay's key")[1]["push_registration_error_code"], CODE, "its code")
    update(client, other, **other.token_group(key))
    expect(client.next(2, "a good one")[0]["push_registration_error_code"], None, "its code")
    stage.services.set_device("fcm", other, "removed")
    stage.notify([phone], "one of two is dead")
    expect(client.next(1, "a dead token")[0]["push_token_id"], None, "a dead token")
    for each in (phone, other):
        client("POST", "remove_client_device", device_id=str(each.device_id))
    client.next(2, "logout")
    expect(client.state["devices"], {}, "after logout")


def row(talk):
    def run(folder):
        need_modules("nacl", "requests")
        folder = pathlib.Path(folder)
        with relay(folder) as served, origin(folder, folder / "state") as (url, key, place):
            stage = Stage(served, url, key, place)
            talk(stage)
            return None, f"{stage.client.calls} calls as described, events as fetched, opened by PyNaCl"
    return run


ROWS = [("Python as phone of our origin, zap", row(zap)), ("Python as phone of our origin, v12", row(v12))]
