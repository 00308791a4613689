"""A row in which foreign code is a hostile client at our origin. It takes and learns nothing that is another's, and
what is malformed gets one clear error and changes nothing. Written from the protocol's description.
"""
import concurrent.futures
import contextlib
import pathlib
import secrets
import socket
import time
import urllib.parse

import requests

from tools import Failed, expect, need_modules, relay
from .zulip_clients import Client, Stage, ZapPhone, become_active, origin
from .zulip_deployed import DevicePhone, KeyedPhone, join
from .zulip_peer import answered, b64

MALLORY = "mallory@example.com"
# Where a double loses the last digit, and where signed integers end.
EDGES = [-2**63, -2**53 - 1, -2**53, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1]
# None of them is an integer as the protocol writes one.
NO_INTEGERS = [str(2**63), str(-2**63 - 1), str(2**64), "9" * 400, "+1", "01", "-0", "-01", "--1", "1e3", "1.0", "0x1",
               " 1", "1 ", "1\n", "", "-", '"1"', "null", "NaN", "\u22121", "\uff11", "1\0", "1_000", "1,0"]
# Points of low order on Curve25519, and other spellings of them: of any, the shared secret is known to everybody.
WEAK_POINTS = [number.to_bytes(32, "little") for number in (
    0, 1, 2**255 - 20, 2**255 - 19, 2**255 - 18,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823)]
WEAK_POINTS += [point[:31] + bytes([point[31] | 0x80]) for point in WEAK_POINTS]
DEVICES = 100  # of one user, in each form
QUEUES = 100  # of one user: a phone's does not drop another's
FLOOD = 1_000
SILENT_CONNECTIONS = 120
# So many of them ask for the whole state again and again: far more than a connection's buffers hold.
SILENT_STATES, PIPELINED = 6, 60
# While all that goes on. A phone waits longer than that for its first answer.
OTHERS_SECONDS = 10


def raw(session, url, fields, auth):
    """A POST whose form is the list of `fields`, so that a name may stand there twice."""
    return session.post(url, data=urllib.parse.urlencode(fields).encode(), auth=auth, timeout=15,
                        headers={"Content-Type": "application/x-www-form-urlencoded"})


def alike(first, second, names, what):
    """Two answers that differ in the ids that were asked for alone, each named in `names`, and in the date."""
    told = []
    for answer, name in zip((first, second), names):
        fields = {field.lower(): value for field, value in answer.headers.items() if field.lower() != "date"}
        told.append((answer.status_code, fields, answer.content.replace(str(name).encode(), b"*")))
    expect(told[0], told[1], what)


class Mallory:
    """A user whose client keeps to no rule, beside a user who has one good phone."""

    def __init__(self, stage):
        self.stage, self.bouncer_key = stage, stage.bouncer_key
        self.key = stage.operator("user", "add", MALLORY)["key"]
        self.client = Client(stage.url, self.key, MALLORY)
        self.auth = (MALLORY, self.key)

    def call(self, path, fields):
        self.client.calls += 1
        return raw(self.client.session, f"{self.stage.url}/api/v1/{path}", fields, self.auth)

    def refused(self, fields, what, code="BAD_REQUEST", path="mobile_push/register"):
        return answered(self.call(path, list(fields.items()) if isinstance(fields, dict) else fields), 400, what, code)

    def nothing_changed(self, what):
        """No record, no event, and nothing owed to the relay."""
        self.client.quiet(what)
        expect(self.stage.operator("registrations", "list", MALLORY), {"registrations": []}, what)


def client_row(stage):
    ada, phone = stage.client, ZapPhone("fcm")
    become_active(ada, phone, stage.bouncer_key)
    mallory = Mallory(stage)
    integers(mallory)
    edges(mallory)
    weak_points(mallory)
    doubled(mallory)
    two_faults(mallory)
    others_forms(mallory)
    foreign_ids(mallory, ada, phone)
    with stage.scene("a flood"):
        flood(mallory, ada, phone)
    return mallory.client.calls


def integers(mallory):
    """Text that is no integer, wherever one is asked for; ids of nobody are no fault where they do no harm."""
    good = ZapPhone("apns").fields(mallory.bouncer_key)
    keyed = KeyedPhone("apns").fields(mallory.bouncer_key)
    device = DevicePhone("apns", 7).key_group()
    test = "mobile_push/e2ee/test_notification"
    for text in NO_INTEGERS:
        what = f"the integer {text[:30]!r}"
        for form in (good, keyed):
            mallory.refused({**form, "push_account_id": text}, what)
        mallory.refused({**device, "device_id": text}, what)
        mallory.refused({"device_id": text}, what, path="remove_client_device")
        mallory.refused({"push_account_id": text}, what, path="mobile_push/forget")
        for name in ("push_account_id", "device_id"):
            mallory.refused({name: text}, what, path=test)
    for number in [*EDGES, 0]:
        what = f"the integer {number}"
        mallory.refused({**device, "device_id": number}, what)
        mallory.refused({"device_id": number}, what, path="remove_client_device")
        answered(mallory.call("mobile_push/forget", [("push_account_id", number)]), 200, what)
        for name in ("push_account_id", "device_id"):
            mallory.refused({name: number}, what, "NO_ACTIVE_PUSH_DEVICE", path=test)
    mallory.nothing_changed("integers")


def edges(mallory):
    """Each of these ids is an account of its own, up to the push that names it."""
    stage, client = mallory.stage, mallory.client
    phones = [ZapPhone(kind, number) for number, kind in zip(EDGES, ["apns", "fcm"] * 4)]
    for phone in phones:
        become_active(client, phone, mallory.bouncer_key)
    stage.operator("notify", MALLORY, "edges")
    for kind, name in (("apns", "production"), ("fcm", "fcm")):
        some = {phone.token.lower(): phone for phone in phones if phone.kind == kind}
        for found in stage.services.arrived(name, len(some)):
            body = found["json"] if kind == "apns" else found["json"]["message"]["data"]
            some.pop(found["token"].lower()).open_delivered(body)
        expect(some, {}, "phones without a push")
    device = DevicePhone("apns", 7)
    join(client, device, mallory.bouncer_key)
    for number in (-1, 2**32, 2**53 + 1, 2**63 - 1):
        mallory.refused({**device.key_group(), "device_id": device.device_id, "push_key_id": number}, f"key {number}")
    for number in (0, 2**32 - 1):
        form = {**device.key_group(), "device_id": device.device_id, "push_key_id": number}
        answered(mallory.call("mobile_push/register", list(form.items())), 200, f"key {number}")
        expect(client.next(1, f"key {number}")[0]["push_key_id"], number, "a key's id")
    client("POST", "remove_client_device", device_id=str(device.device_id))
    for phone in phones:
        client("POST", "mobile_push/forget", push_account_id=str(phone.account_id))
    client.next(1 + len(phones), "all of them forgotten")
    mallory.nothing_changed("edges")


def weak_points(mallory):
    good = ZapPhone("apns").fields(mallory.bouncer_key)
    for point in WEAK_POINTS:
        mallory.refused({**good, "push_public_key": b64(point)}, f"the point {point.hex()}")
    for text in (b64(bytes(31)), b64(bytes(33)), good["push_public_key"].rstrip("="), good["push_public_key"] + "\n",
                 good["push_public_key"].replace(good["push_public_key"][0], "-", 1), "A" * 60_000):
        mallory.refused({**good, "push_public_key": text}, f"the key {text[:50]!r}")
    mallory.nothing_changed("keys of low order")


def doubled(mallory):
    """Of a name that stands there twice, the last counts: in a form, and within a blob."""
    client, phone = mallory.client, ZapPhone("fcm")
    good = list(phone.fields(mallory.bouncer_key).items())
    wrong = {"push_account_id": "007", "encrypted_push_registration": "AAAA", "bouncer_public_key": "",
             "push_public_key": b64(WEAK_POINTS[0]), "token_kind": "hms"}
    for name, value in wrong.items():
        mallory.refused([*good, (name, value)], f"{name} twice, the last one wrong")
    mallory.refused([*good, ("push_key", phone.push_key), ("push_public_key", dict(good)["push_public_key"])],
                    "a mark of two forms, beside a double")
    mallory.nothing_changed("doubled names")
    answered(mallory.call("mobile_push/register", [*wrong.items(), *good]), 200, "the last one good")
    client.next(2, "the last one good")
    client("POST", "mobile_push/forget", push_account_id=str(phone.account_id))
    client.next(1, "forgotten")


def two_faults(mallory):
    """The first of the order of §14.4 is the one that is told."""
    good = ZapPhone("apns").fields(mallory.bouncer_key)
    names = ["push_account_id", "encrypted_push_registration", "bouncer_public_key", "push_public_key", "token_kind"]
    url = mallory.stage.url + "/api/v1/mobile_push/register"
    answered(raw(mallory.client.session, url, [("push_account_id", "007")], (MALLORY, "x" * 32)), 401,
             "a wrong key, and all the rest")
    for place, name in enumerate(names):
        if name == "push_public_key":  # Without it and without `push_key` it is of no form.
            continue
        rest = {each: good[each] for each in names if each != name}
        malformed = {each: "" for each in rest}
        for form, what in ((malformed, "the others are malformed"),
                           ({each: value for each, value in rest.items()
                             if names.index(each) < place or each == "push_public_key"}, "and what is behind it")):
            told = mallory.refused(form, f"{name} is missing, {what}", "REQUEST_VARIABLE_MISSING")
            expect(told["var_name"], name, f"{name} is missing, {what}")
    for first, second in zip(names, names[1:]):
        alone, both = (mallory.refused({**good, **changes}, f"{first} is malformed")
                       for changes in ({first: ""}, {first: "", second: ""}))
        expect(both, alone, f"{first} and {second} are malformed")
    mallory.nothing_changed("two faults")


def others_forms(mallory):
    """Marks of two forms, and each form with another's values."""
    zap, keyed, device = ZapPhone("apns"), KeyedPhone("apns"), DevicePhone("apns", 7)
    good = zap.fields(mallory.bouncer_key)
    for mark in ("push_key", "device_id", "token_id", "push_key_id"):
        for value in ("", "1", device.push_key):
            mallory.refused({**good, mark: value}, f"{mark} beside push_public_key")
    mallory.refused({**good, "push_public_key": keyed.push_key}, "a push_key as public key")
    mallory.refused({**keyed.fields(mallory.bouncer_key), "push_key": good["push_public_key"]}, "a public key as key")
    mallory.refused({**device.key_group(), **device.token_group(mallory.bouncer_key), "device_id": zap.account_id},
                    "an account's id as a device's")
    mallory.refused({}, "nothing at all", "REQUEST_VARIABLE_MISSING")
    for path in ("users/me/apns_device_token", "users/me/android_gcm_reg_id"):
        mallory.refused({"token": zap.token, "appid": "org.example"}, "a plaintext registration", path=path)
    many = [(f"x{number}", "1") for number in range(5_000)]
    mallory.refused([*good.items(), *many], "5,000 names more")
    mallory.nothing_changed("others' forms")


def foreign_ids(mallory, ada, phone):
    """Another user's ids are those of nobody, to the byte; and an id of theirs may be one of ours."""
    client, device = mallory.client, DevicePhone("fcm", 7)
    join(ada, device, mallory.bouncer_key)
    queue = ada.queue
    for name, theirs in (("push_account_id", phone.account_id), ("device_id", device.device_id)):
        unknown = int(str(theirs)[:-1] + str((int(str(theirs)[-1]) + 5) % 10))
        for path in {"push_account_id": ("mobile_push/forget", "mobile_push/e2ee/test_notification"),
                     "device_id": ("remove_client_device", "mobile_push/register",
                                   "mobile_push/e2ee/test_notification")}[name]:
            more = list(device.key_group().items()) if path.endswith("push/register") else []
            alike(*(mallory.call(path, [(name, each), *more]) for each in (theirs, unknown)), (theirs, unknown),
                  f"{path}: another user's id beside an unknown one")
    for method in ("GET", "DELETE"):
        alike(*(client.ask(method, "events", queue_id=name, last_event_id=-1, dont_block="true")
                for name in (queue, "f" * len(queue))), (queue, "f" * len(queue)), "another user's queue")
    ada.quiet("what another user asked")
    # The same id is two accounts of two users, and each gets its own.
    twin = ZapPhone("apns", phone.account_id)
    become_active(client, twin, mallory.bouncer_key)
    client("POST", "mobile_push/forget", push_account_id=str(twin.account_id))
    client.next(1, "the twin is forgotten")
    mallory.stage.notify([phone, device], "a text to the other user")
    ada.quiet("a twin")
    ada("POST", "remove_client_device", device_id=str(device.device_id))
    ada.next(1, "a device is removed")
    mallory.nothing_changed("ids of another user")


def flood(mallory, ada, phone):
    """Far more ids than a user may have, blobs that no relay opens, and clients that never read: a good phone of
    another user is served meanwhile, and what is kept is bounded.
    """
    stage, client = mallory.stage, mallory.client
    junk = b64(secrets.token_bytes(200))

    told = []

    def register(number):
        with requests.Session() as session:
            session.trust_env = False
            for step in range(FLOOD // 4):
                form = {**good, "push_account_id": str(number + step)}
                told.append(session.post(f"{stage.url}/api/v1/mobile_push/register", auth=mallory.auth, timeout=30,
                                         data=form).status_code)

    good = ZapPhone("fcm").fields(mallory.bouncer_key, encrypted_push_registration=junk)
    with silent(mallory) as sockets, concurrent.futures.ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(register, number * 10**6) for number in range(1, 5)]
        while len(told) < 2 * DEVICES:
            time.sleep(0.01)
        begun = time.monotonic()
        other = ZapPhone("apns")
        become_active(ada, other, stage.bouncer_key)
        stage.notify([phone, other], "a text within a flood")
        ada("POST", "mobile_push/forget", push_account_id=str(other.account_id))
        ada.next(1, "forgotten within a flood")
        spent = time.monotonic() - begun
        expect(len(told) < FLOOD, True, "the flood goes on")
        for each in waiting:
            each.result()
        expect(len(sockets), SILENT_CONNECTIONS, "connections")
    expect((told.count(200), told.count(400), len(told)), (DEVICES, FLOOD - DEVICES, FLOOD), "ids of one user")
    if spent > OTHERS_SECONDS:
        raise Failed(f"another user's phone took {spent:.1f} s within a flood")
    kept = client.fetch()[0]["push_account_ids"]
    expect((len(kept), {each["status"] for each in kept.values()}), (DEVICES, {"pending"}), "what is kept")
    # Devices have a bound of their own. They have no key, and nobody is called for them.
    made = [client.ask("POST", "register_client_device").status_code for _ in range(DEVICES + 5)]
    expect((made.count(200), made.count(400)), (DEVICES, 5), "devices of one user")
    stage.notify([phone], "a text behind a flood")
    ada.quiet("a flood of another user's")
    # Of the queues, those are gone that nobody asked for; the newest are there.
    queues = [client.fetch()[0]["queue_id"] for _ in range(QUEUES + 5)]
    told = [client.ask("GET", "events", queue_id=name, last_event_id=-1, dont_block="true").status_code
            for name in queues]
    expect((told[:5], told[-QUEUES:]), ([400] * 5, [200] * QUEUES), "event queues of one user")


@contextlib.contextmanager
def silent(mallory):
    """Connections that ask for states and events, one call behind the other, and read none of the answers."""
    url = urllib.parse.urlsplit(mallory.stage.url)
    token = b64(":".join(mallory.auth).encode())
    head = f"Host: {url.netloc}\r\nAuthorization: Basic {token}\r\n"
    state = f"POST /api/v1/register HTTP/1.1\r\n{head}Content-Length: 0\r\n\r\n"
    poll = f"GET /api/v1/events?queue_id={mallory.client.queue}&last_event_id=-1 HTTP/1.1\r\n{head}\r\n"
    with contextlib.ExitStack() as stack:
        sockets = []
        for number in range(SILENT_CONNECTIONS):
            one = stack.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            one.connect((url.hostname, url.port))
            one.settimeout(1)
            with contextlib.suppress(OSError):  # The server reads no further, which is its right.
                one.sendall((state * PIPELINED if number < SILENT_STATES else poll).encode())
            sockets.append(one)
        yield sockets


def hostile_client(folder):
    need_modules("nacl", "requests")
    folder = pathlib.Path(folder)
    with relay(folder) as served, origin(folder, folder / "state") as (url, key, place):
        calls = client_row(Stage(served, url, key, place))
        return None, f"{calls} hostile calls and {FLOOD} in a flood; the other user's phone is served"


ROWS = [("Python as hostile phone of our origin", hostile_client)]
