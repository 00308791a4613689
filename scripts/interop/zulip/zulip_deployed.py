"""Rows in which foreign code is the phone at our origin in the forms that Zulip Server has: 12.x's, with a device, a
key and a token, and 11.x's, with an account id and a key. Written from the protocol's description.
"""
import secrets
import time

from tools import expect
from .zulip_clients import CODE, EXPIRED, ZapPhone, become_active, outdated, padded, rows
from .zulip_forms import DAY_SECONDS, REMOVAL_APS, AccountPhone
from .zulip_peer import Phone, b64, stranger_key


class DevicePhone(Phone):
    """12.x's client: a device at the server, a key and a token."""

    device_id = None

    @property
    def test_id(self):
        return self.device_id

    def key_group(self):
        return {"push_key_id": str(self.key_id), "push_key": self.push_key}

    def token_group(self, bouncer_key, **changes):
        return {"token_kind": self.kind, "token_id": self.token_id, "bouncer_public_key": bouncer_key,
                "encrypted_push_registration": self.register(bouncer_key, **changes)}

    def open_delivered(self, body):
        expect(body["push_key_id"], self.key_id if self.kind == "apns" else str(self.key_id), "the key's id")
        return self.open(padded(body["encrypted_data"], 40))


def update(client, phone, status=200, code=None, **form):
    return client("POST", "mobile_push/register", status, code, device_id=str(phone.device_id), **form)


def join(client, phone, key):
    """A device, which cannot do with less than both groups the first time; then both."""
    phone.device_id = client("POST", "register_client_device")["device_id"]
    [event] = client.next(1, "a device")
    expect(event, {"type": "device", "op": "add", "device_id": phone.device_id}, "a device")
    update(client, phone, 400, "BAD_REQUEST")
    update(client, phone, 400, "BAD_REQUEST", **phone.token_group(key))
    update(client, phone, 400, "BAD_REQUEST", **phone.key_group())
    update(client, phone, 400, "BAD_REQUEST", push_public_key=b64(bytes(phone.key)), **phone.key_group())
    client.quiet("what was refused")
    update(client, phone, **phone.key_group(), **phone.token_group(key))
    pending, active = client.next(2, "a registration")
    expect((pending["pending_push_token_id"], pending["push_key_id"]), (phone.token_id, phone.key_id), "pending")
    expect(active, {"type": "device", "op": "update", "device_id": phone.device_id,
                    "push_token_id": phone.token_id, "pending_push_token_id": None}, "active")


def changed_column(client, phone, name, value, what):
    """One event in which nothing but that column of that device changes."""
    [event] = client.next(1, what)
    expect(event, {"type": "device", "op": "update", "device_id": phone.device_id, name: value}, what)


def v12(stage):
    client, key = stage.client, stage.bouncer_key
    phone, other = DevicePhone("apns", 7), DevicePhone("fcm", 7)
    with stage.scene("two phones"):
        stage.strangers()
        client("POST", "mobile_push/e2ee/test_notification", 400, "NO_ACTIVE_PUSH_DEVICE")
        for each in (phone, other):
            join(client, each, key)
        stage.notify([phone, other], "a text")
        stage.tests([phone, other], "device_id")
        stage.removal([phone, other], REMOVAL_APS)
    with stage.scene("repeats and changes"):
        changes(stage, phone, other)
    with stage.scene("relay's refusals"):
        refused_by_relay(stage, phone, other)
    with stage.scene("a lost queue"):
        waiting = DevicePhone("apns", 7)
        join(client, waiting, key)
        fresh = DevicePhone("apns", 7)
        waiting.token, waiting.token_id = fresh.token, fresh.token_id
        stage.lost_queue(lambda: update(client, waiting, **waiting.token_group(key)))
        expect(client.state["devices"][str(waiting.device_id)]["push_token_id"], waiting.token_id, "in between")
        client("POST", "remove_client_device", device_id=str(waiting.device_id))
        client.next(1, "one is removed")
    with stage.scene("a dead token"):
        stage.services.set_device("fcm", other, "removed")
        stage.notify([phone], "one of two is dead", dead=[other])
        changed_column(client, other, "push_token_id", None, "a dead token")
    with stage.scene("a restore"):
        restored = restore(stage, phone)
    with stage.scene("logout"):
        for each in (restored, other):
            client("POST", "remove_client_device", device_id=str(each.device_id))
        client.next(2, "logout")
        expect(client.state["devices"], {}, "after logout")
        stage.notify([], "nobody is left")


def changes(stage, phone, other):
    """The same again changes nothing; another key is the server's alone; another token goes to the relay."""
    client, key = stage.client, stage.bouncer_key
    update(client, phone, **phone.key_group(), **phone.token_group(key))
    client.quiet("the same again")
    phone.key, phone.key_id = secrets.token_bytes(32), secrets.randbits(32)
    update(client, phone, **phone.key_group())
    changed_column(client, phone, "push_key_id", phone.key_id, "another key")
    stage.notify([phone, other], "after another key")
    fresh = DevicePhone("apns", 7)
    phone.token, phone.token_id = fresh.token, fresh.token_id
    update(client, phone, **phone.token_group(key))
    pending, active = client.next(2, "another token")
    expect(("push_key_id" in pending, active["push_token_id"]), (False, phone.token_id), "another token")
    stage.notify([phone, other], "after another token")


def refused_by_relay(stage, phone, other):
    """The code stays at the device, and a good registration clears it."""
    client, key = stage.client, stage.bouncer_key
    stranger = DevicePhone("fcm", 7)
    late = int(time.time()) - 2 * DAY_SECONDS
    for what, group, code in (("another relay's key", stranger.token_group(stranger_key()), CODE),
                              ("an outdated blob", stranger.token_group(key, timestamp=late), EXPIRED)):
        update(client, other, **group)
        client.next(2, what)
        expect(client.state["devices"][str(other.device_id)]["push_registration_error_code"], code, what)
    update(client, other, **other.token_group(key))
    expect(client.next(2, "a good one")[0]["push_registration_error_code"], None, "its code")
    stage.notify([phone, other], "behind what was refused")


def restore(stage, phone):
    """Another device at the server, with key and token of its own; the old one hears that its token is gone, and is
    removed.
    """
    client, restored = stage.client, DevicePhone("apns", 7)
    join(client, restored, stage.bouncer_key)
    expect(restored.device_id != phone.device_id, True, "a device of its own")
    stage.notify([phone, restored], "both of them")
    stage.services.set_device("production", phone, "expired")
    stage.notify([restored], "the old phone is no more", dead=[phone])
    changed_column(client, phone, "push_token_id", None, "the old phone is no more")
    client("POST", "remove_client_device", device_id=str(phone.device_id))
    [gone] = client.next(1, "the old device")
    expect(gone, {"type": "device", "op": "remove", "device_id": phone.device_id}, "the old device")
    update(client, phone, 400, "BAD_REQUEST", **phone.key_group(), **phone.token_group(stage.bouncer_key))
    client("POST", "remove_client_device", 400, "BAD_REQUEST", device_id=str(phone.device_id))
    client.quiet("what was refused to a device that is gone")
    stage.notify([restored], "after a restore")
    return restored


class KeyedPhone(AccountPhone):
    """11.x's client: an account id, and a key that opens content."""

    def __init__(self, kind, account_id=None):
        super().__init__(kind, account_id or secrets.randbelow(2**63 - 1) + 1, "v11")

    @property
    def test_id(self):
        return self.account_id

    def open_delivered(self, body):
        number = self.account_id if self.kind == "apns" else str(self.account_id)
        expect(body["push_account_id"], number, "the account's id")
        expect("push_key_id" in body, False, "12.x's member")
        return self.open(padded(body["encrypted_data"], 40))

    def fields(self, bouncer_key, **changes):
        return {"push_account_id": str(self.account_id), "push_key": self.push_key, "token_kind": self.kind,
                "bouncer_public_key": bouncer_key, "encrypted_push_registration": self.blob(bouncer_key), **changes}


def shown(client, phone, changes, what):
    """The events of one account, each `(status, code)`, and the map behind the last."""
    told = [(each["push_account_id"], each["status"], each.get("error_code"))
            for each in client.next(len(changes), what)]
    expect(told, [(phone.account_id, *each) for each in changes], what)


JOINED = [("pending", None), ("active", None)]


def v11(stage):
    client, key = stage.client, stage.bouncer_key
    phone, other = KeyedPhone("apns", -2**53 - 1), KeyedPhone("fcm", 2**63 - 1)
    with stage.scene("refusals"):
        refused(client, phone, key)
    with stage.scene("two phones"):
        for each in (phone, other):
            client("POST", "mobile_push/register", **each.fields(key))
            shown(client, each, JOINED, "a registration")
        expect(client.state["push_account_ids"], {}, "the other form's map")
        stage.notify([phone, other], "a text")
        stage.tests([phone, other], "push_account_id")
        stage.removal([phone, other], REMOVAL_APS)
    with stage.scene("a repeat"):
        client("POST", "mobile_push/register", **phone.fields(key))
        stage.settled("a repeat")
        client.quiet("a repeat")
        stage.notify([phone, other], "behind a repeat")
    with stage.scene("relay's refusals"):
        failed(stage, phone, other)
    with stage.scene("another token"):
        changed = KeyedPhone("apns")
        changed.key = phone.key
        client("POST", "mobile_push/register", **changed.fields(key))
        shown(client, changed, JOINED, "another token")
        forget(client, phone)
        stage.notify([changed, other], "after another token")
    # Without an event; the next state lacks it.
    with stage.scene("a dead token"):
        stage.services.set_device("fcm", other, "removed")
        stage.notify([changed], "one of two is dead", dead=[other])
        stage.services.nothing_more("a dead token")
        del client.state["push_devices"][str(other.account_id)]
        client.quiet("a dead token")
    with stage.scene("one name space"):
        replaced(stage, changed)


def refused(client, phone, key):
    good = phone.fields(key)
    for text in ("007", "-0", "1e3", str(2**63), str(-2**63 - 1)):
        client("POST", "mobile_push/register", 400, "BAD_REQUEST", **{**good, "push_account_id": text})
    short, tagged = b64(phone.key), b64(b"\x32" + phone.key)
    for mark in ({"push_key": short}, {"push_key": tagged}, {"push_key": "A"}, {"token_kind": "hms"},
                 {"encrypted_push_registration": "AAAA"}, {"bouncer_public_key": ""},
                 {"push_public_key": b64(bytes(phone.pair.public_key))}):
        client("POST", "mobile_push/register", 400, "BAD_REQUEST", **{**good, **mark})
    for name in ("push_account_id", "token_kind", "bouncer_public_key", "encrypted_push_registration"):
        form = {each: value for each, value in good.items() if each != name}
        told = client("POST", "mobile_push/register", 400, "REQUEST_VARIABLE_MISSING", **form)
        expect(told["var_name"], name, "what is missing")
    client.quiet("what was refused")


def failed(stage, *living):
    """A refused record stays, with its code, and begins anew with a good registration."""
    client, key = stage.client, stage.bouncer_key
    phone = KeyedPhone("fcm")
    for changes, code in (({"bouncer_public_key": stranger_key()}, CODE),
                          ({"encrypted_push_registration": outdated(phone, key)}, EXPIRED)):
        client("POST", "mobile_push/register", **phone.fields(key, **changes))
        shown(client, phone, [("pending", None), ("failed", code)], code)
        stage.notify(living, "beside what was refused")
    client("POST", "mobile_push/register", **phone.fields(key))
    shown(client, phone, JOINED, "a good one")
    stage.notify([*living, phone], "behind a good one")
    forget(client, phone)


def forget(client, phone):
    """It is gone from the next state; this form has no event for it."""
    client("POST", "mobile_push/forget", push_account_id=str(phone.account_id))
    del client.state["push_devices"][str(phone.account_id)]
    client.quiet("forgotten")


def replaced(stage, phone):
    """An id is one record, of the form that registered last."""
    client, key = stage.client, stage.bouncer_key
    newer = ZapPhone("apns", phone.account_id)
    newer.token = phone.token
    del client.state["push_devices"][str(phone.account_id)]
    become_active(client, newer, key)
    stage.notify([newer], "replaced by the specification's form")
    client("POST", "mobile_push/register", **phone.fields(key))
    gone, pending, active = client.next(3, "replaced by 11.x's form")
    expect((gone["type"], gone["op"], pending["type"], active["status"]),
           ("push_account", "remove", "push_device", "active"), "replaced by 11.x's form")
    stage.notify([phone], "replaced by 11.x's form")
    forget(client, phone)
    expect(client.state, {"push_account_ids": {}, "devices": {}, "push_devices": {}}, "nothing is left")


ROWS = rows("v12", v12) + rows("v11", v11)
