"""Rows in which foreign code is the relay that our origin calls, and makes the choices that the specification leaves
open otherwise than ours: the errors' spelling, no list of stale ids, ids near 2⁶³, late answers; it misbehaves, and it
asks for time. What our origin's operator is told of it all is judged, too.
"""
import base64
import contextlib
import http.server
import json
import subprocess
import threading
import time
import urllib.parse

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, SealedBox

from tools import SEALBELL, Failed, expect, free_port, need_modules, running
from .zulip_clients import USER, Client, ZapPhone
from .zulip_deployed import DevicePhone
from .zulip_peer import PREFIX, b64

LARGEST = 2**63 - 1
LATE_SECONDS = 2
PATIENCE_SECONDS = 60
# In place of a body: one that never ends, and how much of it is too much for anybody to take.
ENDLESS, ENDLESS_BYTES = object(), 64 << 20
NOT_HERE = "<html><body>Not here</body></html>"
# At the same server, so that whoever follows is heard there.
ELSEWHERE = {"Location": PREFIX + "elsewhere"}


class Bouncer:
    """Rows and what was asked, and when. `script` has for each coming registration what is answered instead of the
    truth, `notify_script` for each coming notification.
    """

    def __init__(self):
        self.pair = PrivateKey.generate()
        self.public_key = b64(bytes(self.pair.public_key))
        self.known, self.rows, self.next_id = None, {}, LARGEST
        self.registrations, self.notified, self.stale_asked = [], [], 0
        self.script, self.notify_script, self.dead, self.strayed = [], [], [], 0
        # Seconds of this process's own clock: of the registrations, and of the calls that notify.
        self.registered_at, self.notified_at = [], []
        self.endless_bytes = 0
        self.changed = threading.Condition()

    def answer(self, method, path, query, auth, body):
        """Status, further fields, and a body that is JSON unless it is text."""
        form = {name: values[0] for name, values in urllib.parse.parse_qs(body.decode(), True).items()}
        if path == "elsewhere":
            self.strayed += 1
            return 200, {}, {"result": "success", "msg": "", "device_id": 1}
        if path == "server/register":
            self.known = (form["zulip_org_id"], form["zulip_org_key"])
            return 200, {}, {"result": "success", "msg": "", "created": True}
        if auth != self.known:
            return 401, {}, {"result": "error", "msg": "", "code": "UNAUTHORIZED"}
        if path == "server/analytics" and method == "POST":
            realms = {each["uuid"]: {"can_push": True, "expected_end_timestamp": None}
                      for each in json.loads(form["realms"])}
            return 200, {}, {"result": "success", "msg": "", "realms": realms}
        if path == "server/analytics/status":
            return 200, {}, {"result": "success", "msg": "", "last_realm_count_id": 0, "last_installation_count_id": 0,
                             "last_realmauditlog_id": 0}
        with self.changed:
            self.changed.notify_all()
            if path == "push/e2ee/register" and method == "POST":
                return self.register(form)
            if path == "push/e2ee/notify" and method == "POST":
                return self.notify(json.loads(body))
            if path == "push/e2ee/stale_devices":
                return self.stale({name: values[0] for name, values in urllib.parse.parse_qs(query).items()})
        return 404, {}, NOT_HERE

    def stale(self, _):
        """A relay without the list."""
        self.stale_asked += 1
        return 404, {}, NOT_HERE

    def register(self, form):
        self.registrations.append(form)
        self.registered_at.append(time.monotonic())
        try:
            plain = json.loads(SealedBox(self.pair).decrypt(base64.b64decode(form["encrypted_push_registration"])))
        except (CryptoError, ValueError):
            return 400, {}, {"result": "error", "msg": "", "code": "INVALID_BOUNCER_PUBLIC_KEY"}
        if self.script:
            return self.script.pop(0)
        told = {"result": "success", "msg": "", "extra": [1, {"a": None}]}
        if "token_id" not in form:
            key = (plain["token"], form["push_account_id"], form["realm_uuid"])
            if key not in self.rows:
                self.rows[key], self.next_id = self.next_id, self.next_id - 1
            told["device_id"] = self.rows[key]
        return 200, {}, told

    def notify(self, request):
        self.notified_at.append(time.monotonic())
        if self.notify_script:
            return self.notify_script.pop(0)
        items = request["push_requests"]
        # A call may come twice: whoever lost its answer asks again, with the same ciphertext.
        self.notified += [each for each in items if each not in self.notified]
        by_token = bool(items) and "token_id" in items[0]
        name = "delete_token_ids" if by_token else "delete_device_ids"
        dead = [each for each in self.dead if isinstance(each, str) == by_token]
        return 200, {}, {"result": "success", "msg": "", "apple_successfully_sent_count": len(items),
                         "android_successfully_sent_count": 0, name: dead}

    def until(self, is_so, what):
        with self.changed:
            if not self.changed.wait_for(is_so, PATIENCE_SECONDS):
                raise Failed(f"{what}: not within {PATIENCE_SECONDS} s; {len(self.registrations)} registrations, "
                             f"{len(self.notified)} items")


@contextlib.contextmanager
def serving(bouncer):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            url = urllib.parse.urlsplit(self.path)
            kind, _, told = self.headers.get("Authorization", "").partition(" ")
            auth = tuple(base64.b64decode(told).decode().split(":", 1)) if kind == "Basic" else None
            path = url.path.removeprefix(PREFIX)
            status, fields, answer = bouncer.answer(self.command, path, url.query, auth, body)
            time.sleep(float(fields.pop("late", 0)))
            if answer is ENDLESS:
                return self.endless(status)
            data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            is_cut = fields.pop("cut", False)
            self.send_response(status)
            for name, value in {"Content-Type": "text/html" if isinstance(answer, str) else "application/json",
                                "Content-Length": str(len(data)), **fields}.items():
                self.send_header(name, value)
            self.close_connection = self.close_connection or is_cut
            # Whoever waits no longer for an answer has gone.
            with contextlib.suppress(OSError):
                self.end_headers()
                self.wfile.write(data[:len(data) // 2] if is_cut else data)

        do_GET = do_POST

        def endless(self, status):
            """A body that goes on until nobody takes it any more."""
            self.close_connection = True
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Connection", "close")
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(b'{"result":"success","msg":"')
                while bouncer.endless_bytes < ENDLESS_BYTES:
                    bouncer.endless_bytes += self.wfile.write(b"x" * 65_536)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Origin:
    """Our origin, told of that relay by its configuration, and its operator.

    `authority` is the file of who signs the relay's certificate; `more` has further lines of the section `origin`.
    """

    def __init__(self, folder, relay_url, authority=None, more=""):
        self.folder, self.state = folder, folder / "origin"
        self.url = f"http://127.0.0.1:{free_port()}"
        ca = f', ca: "{authority}"' if authority else ""
        (folder / "origin.yaml").write_text(
            f'origin:\n  url: {self.url}\n  relay: {{ url: "{relay_url}"{ca} }}\n  contact: admin@acme.test\n{more}'
            "  queue: { first_retry: 1s, longest_retry: 2s }\n"
            f'listeners:\n  origin: {{ bind: "{self.url.split("//")[1]}" }}\n  admin: {{ bind: "127.0.0.1:0" }}\n'
            'store: { url: "sqlite:relay.sqlite", keys: storage.keys }\n')

    def ask(self, *words):
        return subprocess.run([SEALBELL, *words], cwd=self.folder, capture_output=True, text=True, timeout=60)

    def command(self, *words):
        told = self.ask(*words)
        if told.returncode:
            raise Failed(f"{' '.join(words[:3])} ended with {told.returncode}: {told.stderr.strip()[-300:]}")
        return told.stdout

    def fails(self, *words):
        """What a command of the operator says that must fail."""
        told = self.ask("origin", *words, "--at", str(self.state), "--json")
        expect((told.returncode != 0, told.stdout), (True, ""), f"{words[0]}: it must fail")
        return told.stderr

    def operator(self, *words):
        return self.command("origin", *words, "--at", str(self.state), "--json")

    @contextlib.contextmanager
    def runs(self):
        self.command("keys", "new", "storage", "--file", "storage.keys")
        command = [SEALBELL, "origin", "--config", "origin.yaml", "--state", str(self.state)]
        with running(command, self.folder, (self.state / "run.json").exists, "origin.log", absent=Failed) as process:
            yield
        expect(process.returncode, 0, "the origin's end")


def statuses(client, phone, changes, what):
    told = [(each["op"], each.get("status"), each.get("error_code")) for each in client.next(len(changes), what)]
    expect(told, changes, what)


# What a relay may get wrong, a phone's share at a time: each is tried again, with the same blob.
MISFORTUNES = [
    [(200, {}, "<html><body>Welcome</body></html>"), (200, {}, {"result": "success", "device_id": 0})],
    [(200, {}, {"result": "success", "device_id": "5"}), (200, {}, '{"result":"success","device_id":1e3}')],
    [(200, {}, {"result": "success", "device_id": 2**63}), (301, ELSEWHERE, "")],
    [(308, ELSEWHERE, ""), (502, {}, "Bad gateway")],
    [(401, {}, {"result": "error", "code": "UNAUTHORIZED"}), (503, {"late": LATE_SECONDS}, "")]]


def misfortunes(bouncer, client):
    """One phone for each share; the first one is left, with the largest id."""
    phones = []
    for share in MISFORTUNES:
        phone, begun = ZapPhone("fcm"), len(bouncer.registrations)
        bouncer.script = [(status, dict(fields), answer) for status, fields, answer in share]
        client("POST", "mobile_push/register", **phone.fields(bouncer.public_key))
        statuses(client, phone, [("add", "pending", None)], "a record")
        bouncer.until(lambda: len(bouncer.registrations) > begun + len(share), f"the registration behind {share}")
        statuses(client, phone, [("update", "active", None)], "a relay that answers well at last")
        asked = bouncer.registrations[begun:]
        expect({(each["push_account_id"], each["encrypted_push_registration"]) for each in asked},
               {(str(phone.account_id), asked[0]["encrypted_push_registration"])}, "what was asked")
        phones.append(phone)
    for phone in phones[1:]:
        client("POST", "mobile_push/forget", push_account_id=str(phone.account_id))
        statuses(client, phone, [("remove", None, None)], "forgotten")
    return phones[0]


def talk(bouncer, origin, key):
    client = Client(origin.url, key)
    phone = misfortunes(bouncer, client)
    expect(bouncer.strayed, 0, "redirects that were followed")
    said = notified(bouncer, origin, 1)[0]
    expect(said["device_id"], LARGEST, "the largest id")
    content = phone.open_content(said["encrypted_content"])
    expect((content["user_id"], content["realm_url"]), (client.user_id, origin.url), "what the phone opened")
    # A list that is not there removes nothing.
    origin.operator("stale")
    bouncer.until(lambda: bouncer.stale_asked, "the question for stale ids")
    client.quiet("a relay without a list")
    outdated(bouncer, client)
    # Ids of nobody's and of no form in the list of the dead end nothing.
    bouncer.dead = [0, -1, 5, 2**63 - 9, 2**64]
    notified(bouncer, origin, 1)
    client.quiet("dead ids of others")
    bouncer.dead = [LARGEST, LARGEST, 7]
    notified(bouncer, origin, 1)
    statuses(client, phone, [("remove", None, None)], "a dead id")
    by_token(bouncer, origin, client)
    return client.calls


def outdated(bouncer, client):
    """The document's spelling alone, in lower case."""
    phone = ZapPhone("apns")
    bouncer.script = [(400, {}, {"result": "error", "msg": "", "error_code": "request_expired"})]
    client("POST", "mobile_push/register", **phone.fields(bouncer.public_key))
    statuses(client, phone, [("add", "pending", None), ("remove", None, "REQUEST_EXPIRED")], "request_expired")
    bouncer.script = [(400, {}, {"result": "error", "msg": "", "error_code": "invalid_bouncer_public_key"})]
    client("POST", "mobile_push/register", **phone.fields(bouncer.public_key))
    statuses(client, phone, [("add", "pending", None), ("remove", None, "INVALID_BOUNCER_PUBLIC_KEY")], "its key")
    client("POST", "mobile_push/forget", push_account_id=str(phone.account_id))
    statuses(client, phone, [("remove", None, None)], "the note")


def by_token(bouncer, origin, client):
    """12.x's form at the same relay."""
    phone = DevicePhone("fcm", 7)
    phone.device_id = client("POST", "register_client_device")["device_id"]
    client.next(1, "a device")
    client("POST", "mobile_push/register", device_id=str(phone.device_id), **phone.key_group(),
           **phone.token_group(bouncer.public_key))
    client.next(2, "a registration")
    [item] = notified(bouncer, origin, 1)
    expect(item["token_id"], phone.token_id, "the token's id")
    phone.open_delivered({**item["payload"], "push_key_id": str(item["payload"]["push_key_id"])})
    bouncer.dead = [phone.token_id]
    notified(bouncer, origin, 1)
    expect(client.next(1, "a dead token")[0]["push_token_id"], None, "a dead token")


def notified(bouncer, origin, count):
    before = len(bouncer.notified)
    origin.operator("notify", USER, "żółw 🔔")
    bouncer.until(lambda: len(bouncer.notified) >= before + count, "a notification")
    return bouncer.notified[before:]


def busy(seconds, status):
    """An answer that asks for so many seconds."""
    body = {"result": "error", "msg": "", "code": "RATE_LIMIT_HIT"} if status == 429 else "<html>Busy</html>"
    return status, {"Retry-After": str(seconds)}, body


def patience(bouncer, origin, key):
    """What the relay asks for is a lower bound, by the relay's own clock; and the operator sees who waits."""
    client, phone = Client(origin.url, key), ZapPhone("fcm")
    expect(status(origin), BARE, "status of nobody")
    bouncer.script = [busy(3, 429), busy(2, 503)]
    client("POST", "mobile_push/register", **phone.fields(bouncer.public_key))
    statuses(client, phone, [("add", "pending", None)], "a record")
    bouncer.until(lambda: bouncer.registered_at, "the first try")
    told = status(origin)
    expect((told["devices"], told["oldest_waiting"] <= time.time() * 1_000),
           ([{"profile": "zap", "state": "pending", "count": 1}], True), "status of one who waits")
    statuses(client, phone, [("update", "active", None)], "a relay that was busy")
    not_before(bouncer.registered_at, [3, 2], "registrations")
    active = {**BARE, "devices": [{"profile": "zap", "state": "active", "count": 1}]}
    expect(status(origin), active, "status of one who is active")
    bouncer.notify_script = [busy(3, 503), busy(2, 429)]
    sent = json.loads(origin.operator("notify", USER, "patience"))
    expect(sent["devices"], 1, "devices")
    bouncer.until(lambda: bouncer.notified_at, "the first try")
    became(origin, sent["id"], phone, "waiting")
    bouncer.until(lambda: bouncer.notified, "the notification")
    not_before(bouncer.notified_at, [3, 2], "notifications")
    phone.open_content(bouncer.notified[-1]["encrypted_content"])
    became(origin, sent["id"], phone, "accepted")
    became_otherwise(bouncer, origin, client, phone)
    expect(status(origin), BARE, "status of one who is gone")
    return client.calls


def became_otherwise(bouncer, origin, client, phone):
    """A notification that the relay refuses, and one to a device that is dead."""
    bouncer.notify_script = [(400, {}, {"result": "error", "msg": "", "code": "BAD_REQUEST"})]
    became(origin, json.loads(origin.operator("notify", USER, "x"))["id"], phone, "refused")
    client.quiet("a refused notification")
    bouncer.dead = [next(iter(bouncer.rows.values()))]
    became(origin, json.loads(origin.operator("notify", USER, "x"))["id"], phone, "dead")
    statuses(client, phone, [("remove", None, None)], "a dead id")
    sent = json.loads(origin.operator("notify", USER, "x"))
    expect((sent["devices"], json.loads(origin.operator("notification", sent["id"]))["devices"]), (0, []),
           "a notification to nobody")
    unknown = origin.fails("notification", "0" * 32)
    expect("Nobody knows" in unknown, True, "a notification that nobody knows")


# Behind a sign-up with one realm, without phones.
BARE = {"relay": "told", "realms": 1, "realms_requiring": 0, "waiting_polls": 0, "devices": [], "legacy_refused": 0}


def status(origin):
    told = json.loads(origin.operator("status"))
    return {name: told[name] for name in (*BARE, "oldest_waiting") if name in told}


def became(origin, name, phone, state):
    """Waits until the notification is told to have come so far at its only device; then since when and why."""
    ends, begun = time.monotonic() + PATIENCE_SECONDS, time.time()
    while True:
        [told] = json.loads(origin.operator("notification", name))["devices"]
        expect(told["device"], f"account {phone.account_id}", "the device")
        if told["state"] == state:
            break
        if told["state"] != "waiting" or time.monotonic() > ends:
            raise Failed(f"a notification is {told['state']} instead of {state}")
        time.sleep(0.1)
    expect(("reason" in told, begun - PATIENCE_SECONDS < told["at"] / 1_000 <= time.time()),
           (state == "refused", True), f"of a notification that is {state}")


def not_before(moments, asked, what):
    """Each try but the first comes no sooner than the answer to the one before it had asked for."""
    gaps = [after - before for before, after in zip(moments, moments[1:])]
    expect((len(gaps), all(gap >= least for gap, least in zip(gaps, asked))), (len(asked), True),
           f"{what}: {[round(gap, 2) for gap in gaps]} s apart where {asked} s were asked for")


def foreign(converse, relay=Bouncer):
    def run(folder):
        need_modules("nacl", "requests")
        bouncer = relay()
        with serving(bouncer) as url:
            origin = Origin(folder, url)
            with origin.runs():
                origin.operator("sign-up")
                origin.operator("realm", "add", "chat")
                key = json.loads(origin.operator("user", "add", USER))["key"]
                calls = converse(bouncer, origin, key)
        asked = f"{len(bouncer.registrations)} and {len(bouncer.notified)} of the origin"
        return None, f"{calls} calls of a phone, {asked}"
    return run


ROWS = [("Python as relay of our origin", foreign(talk)), ("Python as busy relay of our origin", foreign(patience))]
