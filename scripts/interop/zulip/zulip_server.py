"""A row in which foreign code is the server of our phone: a small one that its author wrote from the specification
alone. It keeps no notes, so that `failed` never appears and a refused record just vanishes; ids are text in its
events; now and then it forgets an event queue. What it pushes goes through our relay to the simulated push services.
"""
import base64
import contextlib
import http.server
import json
import pathlib
import re
import secrets
import subprocess
import threading
import time
import urllib.parse

from nacl.public import PublicKey, SealedBox

from tools import SEALBELL, Failed, expect, need_modules, relay
from .conversation import message
from .zulip_forms import LARGEST, FormsServer
from .zulip_peer import Door, answered, b64

USER, USER_ID = "grace@example.com", 17
REGISTER = {"push_account_id", "encrypted_push_registration", "bouncer_public_key", "push_public_key", "token_kind"}
POLL_SECONDS = 2
# Between a client's call and the relay's: so long a registration is seen to be pending.
RELAY_SECONDS = 0.5
PATIENCE_SECONDS = 20


class House:
    """The server: records, event queues, and what clients called. `refuses` counts registrations that it drops as
    refused by its relay; `loses_queue` has the next poll find that its queue is not known.
    """

    def __init__(self, run):
        self.key = secrets.token_urlsafe(24)
        self.bouncer_key = run["public_keys"]["zulip-main"][0]
        host = f"h-{secrets.token_hex(4)}.example.org"
        self.relay = FormsServer(Door(run["urls"]["public"]), self.bouncer_key, host)
        self.url = None
        self.records, self.queues, self.calls = {}, {}, []
        self.refuses, self.loses_queue, self.lost_queues = 0, False, 0
        # What it says that it can do.
        self.capability = {"encrypted_push_notifications": True}
        self.changed = threading.Condition()
        answered(self.relay.sign_up(), 200, "sign-up")
        answered(self.relay.analytics(), 200, "analytics")

    # The door.

    def answer(self, method, path, form, auth):
        if path == "server_settings":
            return 200, {"realm_url": self.url, "realm_name": "Zażółć 🔔", "zulip_version": "none",
                         "push_notifications_enabled": True, **self.capability}
        if auth != (USER, self.key):
            return 401, {"code": "INVALID_API_KEY"}
        with self.changed:
            self.calls.append((method, path, form))
            self.changed.notify_all()
            if path == "users/me":
                return 200, {"user_id": USER_ID}
            if path == "register":
                name = secrets.token_urlsafe(12)
                self.queues[name] = []
                entries = {str(each): {"status": "active" if row["device_id"] else "pending"}
                           for each, row in self.records.items()}
                return 200, {"queue_id": name, "last_event_id": -1, "push_account_ids": entries}
            if path == "events":
                return self.events(method, form)
            if path == "mobile_push/register":
                return self.register(form)
            if path == "mobile_push/forget":
                if self.records.pop(int(form["push_account_id"]), None):
                    self.tell(form["push_account_id"], op="remove")
                return 200, {}
        return 404, {"code": "BAD_REQUEST"}

    def events(self, method, form):
        name = form.get("queue_id")
        if self.loses_queue and method == "GET":
            self.queues.pop(name, None)
            self.loses_queue, self.lost_queues = False, self.lost_queues + 1
        if name not in self.queues:
            return 400, {"code": "BAD_EVENT_QUEUE_ID"}
        if method == "DELETE":
            del self.queues[name]
            return 200, {}
        last = int(form["last_event_id"])
        self.changed.wait_for(lambda: name not in self.queues or len(self.queues[name]) > last + 1, POLL_SECONDS)
        if name not in self.queues:
            return 400, {"code": "BAD_EVENT_QUEUE_ID"}
        queue = self.queues[name]
        if len(queue) == last + 1:
            queue.append({"type": "heartbeat"})
        return 200, {"events": [{**each, "id": number} for number, each in enumerate(queue) if number > last]}

    def tell(self, account, **members):
        """One event, between two about neighbours that only a reader through doubles takes for this account."""
        told = {"type": "push_account", "push_account_id": str(account), **members}
        near = [{"type": "push_account", "op": "remove", "push_account_id": str(int(account) + step)}
                for step in (-1, 1)]
        for queue in self.queues.values():
            queue += [near[0], told, near[1]]
        self.changed.notify_all()

    def register(self, form):
        account = int(form["push_account_id"])
        is_new = account not in self.records
        row = self.records[account] = {**form, "device_id": None if is_new else self.records[account]["device_id"]}
        if is_new:
            self.tell(account, op="add", status="pending")
        threading.Thread(target=self.pass_on, args=(account, row), daemon=True).start()
        return 200, {}

    def pass_on(self, account, row):
        """The server's queue: as good as the relay's answer."""
        time.sleep(RELAY_SECONDS)
        form = {"realm_uuid": self.relay.realm, **{name: row[name] for name in (
            "push_account_id", "encrypted_push_registration", "bouncer_public_key", "token_kind")}}
        told = self.relay.door.ask("POST", "push/e2ee/register", auth=self.relay.auth, form=form)
        with self.changed:
            if self.records.get(account) is not row:
                return
            if self.refuses or told.status_code != 200:
                self.refuses -= 1
                self.drop(account)
            else:
                was_pending, row["device_id"] = row["device_id"] is None, told.json()["device_id"]
                if was_pending:
                    self.tell(account, op="update", status="active")
            self.changed.notify_all()

    def drop(self, account):
        """Without a reason, and without a note."""
        del self.records[account]
        self.tell(account, op="remove")

    # What the row asks of it.

    def registrations(self):
        return [form for _, path, form in self.calls if path == "mobile_push/register"]

    def forgotten(self):
        return [form["push_account_id"] for _, path, form in self.calls if path == "mobile_push/forget"]

    def until(self, is_so, what):
        with self.changed:
            if not self.changed.wait_for(is_so, PATIENCE_SECONDS):
                raise Failed(f"{what}: not within {PATIENCE_SECONDS} s")

    def push(self, what, number):
        """A message to one record; the text that the phone must show."""
        said = f"żółw 🔔 {secrets.token_hex(6)}"
        content = {**message(5, said), "realm_url": self.url, "user_id": USER_ID}
        plain = json.dumps(content, ensure_ascii=False).encode()
        row = self.records[int(number)]
        box = SealedBox(PublicKey(base64.b64decode(row["push_public_key"], validate=True)))
        told = answered(self.relay.notify([{"device_id": row["device_id"], "priority": "high",
                                            "encrypted_content": b64(box.encrypt(plain))}]), 200, what)
        expect((told["apple_successfully_sent_count"], told["delete_device_ids"]), (1, []), what)
        return said


@contextlib.contextmanager
def serving(house):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            url = urllib.parse.urlsplit(self.path)
            form = dict(urllib.parse.parse_qsl(url.query + "&" + body if body else url.query, True))
            kind, _, told = self.headers.get("Authorization", "").partition(" ")
            auth = tuple(base64.b64decode(told).decode().split(":", 1)) if kind == "Basic" else None
            status, answer = house.answer(self.command, url.path.removeprefix("/api/v1/"), form, auth)
            data = json.dumps({"result": "success" if status == 200 else "error", "msg": "", **answer}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            with contextlib.suppress(OSError):  # Of a client that has gone: its poll was answered to nobody.
                self.wfile.write(data)

        do_GET = do_DELETE = do_POST

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    house.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Tool:
    """Our phone on the command line."""

    def __init__(self, folder, house):
        self.folder, self.house, self.file = folder, house, folder / "phone.json"

    def start(self, *words):
        return subprocess.Popen([SEALBELL, "device", "zulip", *words, "--state", str(self.file)], cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)

    def __call__(self, *words, status=0):
        return self.end(self.start(*words), words, status)

    @staticmethod
    def end(process, words, status=0):
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired as late:
            process.kill()
            raise Failed(f"{words[0]} had not ended after 60 s") from late
        if process.returncode != status:
            raise Failed(f"{words[0]} ended with {process.returncode} instead of {status}: {(err or out)[-300:]}")
        return out

    def status(self, status=0):
        [told] = json.loads(self("status", "--json", status=status))["accounts"]
        return told

    def is_active(self, what):
        """Its id, which is the newest of the server's, too."""
        told = self.status()
        expect((told["state"], told["profile"], told["error_code"]), ("active", "zap", None), what)
        expect(told["id"], self.house.registrations()[-1]["push_account_id"], what)
        return told["id"]

    def opens(self, said, what, *words):
        shown = self(*(words or ("open",)))
        expect([line for line in shown.splitlines() if "żółw" in line and said in line] != [], True,
               f"{what}: {said!r} in {shown[-300:]!r}")


def talk(house, tool, state):
    tool("join", house.url, "--user", USER, "--key", "x" * 32, "--sandbox", str(state), status=1)
    expect(tool.file.exists(), False, "a file of a phone that could not log in")
    unsupported(house, tool, state)
    first = join(house, tool, state)
    tool.opens(house.push("a push", first), "a push", "listen", "--count", "1", "--for", "20")
    from_file(house, tool, first)
    repeat(house, tool, first)
    second = another_token(house, tool, first)
    vanished(house, tool, second)
    third = restore(house, tool, second)
    tool("forget")
    expect((house.forgotten()[-1], list(house.records)), (third, [int(second)]), "forget")
    expect(tool.status()["is_registered"], False, "forget")
    tool("join", house.url)
    last = tool.is_active("joined again")
    expect(last in (first, second, third), False, "an id of one that was forgotten")
    tool.opens(house.push("joined again", last), "joined again")
    another_key(house, tool)
    tool("leave")
    expect((house.forgotten()[-1], list(house.records)), (last, [int(second)]), "leave")
    expect(list(tool.folder.glob("phone.json*")), [], "files of a phone that left")
    expect(house.lost_queues, 2, "queues that were lost")


def unsupported(house, tool, state):
    """Anything but JSON true is no encryption: nothing is registered, and the user is told, by their own setting."""
    words = ("join", house.url, "--user", USER, "--key", house.key, "--sandbox", str(state))
    able = house.capability
    for capability in ({}, {"encrypted_push_notifications": "true"}, {"encrypted_push_notifications": 1},
                       {"encrypted_push_notifications": False, "zulip_feature_level": 405}):
        house.capability = capability
        expect("without encryption" in tool(*words, status=1), True, "what a phone without the setting says")
        expect("your settings require that" in tool(*words, "--require-e2ee", status=1), True,
               "what a phone with the setting says")
        expect((tool.status(1)["advice"], house.registrations()), ("unsupported", []), f"the capability {capability}")
        for file in tool.folder.glob("phone.json*"):
            file.unlink()
    house.capability = able


def join(house, tool, state):
    """The queue is lost while the registration is under way."""
    house.loses_queue = True
    tool("join", house.url, "--user", USER, "--key", house.key, "--sandbox", str(state))
    expect((house.lost_queues, len(house.registrations())), (1, 1), "a lost queue and a registration")
    [form] = house.registrations()
    number = form["push_account_id"]
    expect((form.keys(), str(int(number)), 1 <= int(number) <= LARGEST, form["token_kind"],
            len(base64.b64decode(form["push_public_key"], validate=True))),
           (REGISTER, number, True, "apns", 32), "the call")
    return tool.is_active("joined")


def from_file(house, tool, number):
    """A push as a service hands it over, from a file: text and number are one id; a neighbour's is nobody's."""
    row = house.records[int(number)]
    said = f"żółw {secrets.token_hex(6)}"
    content = json.dumps({**message(6, said), "realm_url": house.url, "user_id": USER_ID}).encode()
    box = b64(SealedBox(PublicKey(base64.b64decode(row["push_public_key"]))).encrypt(content))
    file = tool.folder / "push.json"
    for account, status in ((number, 0), (int(number), 0), (int(number) + 1, 1), (f"0{number}", 1), (None, 1)):
        file.write_text(json.dumps({"push_account_id": account, "encrypted_content": box}))
        shown = tool("open", "--file", str(file), status=status)
        expect(said in shown, status == 0, f"a push for {account!r}")
    # Content of one form is never opened with another's key.
    file.write_text(json.dumps({"push_account_id": number, "encrypted_data": box}))
    tool("open", "--file", str(file), status=1)


def same(former, form, what):
    expect({name: form[name] for name in REGISTER - {"encrypted_push_registration"}},
           {name: former[name] for name in REGISTER - {"encrypted_push_registration"}}, what)
    expect(form["encrypted_push_registration"] == former["encrypted_push_registration"], False, f"{what}: the blob")


def repeat(house, tool, number):
    tool("repeat")
    former, form = house.registrations()
    same(former, form, "a repeat")
    expect(tool.is_active("a repeat"), number, "a repeat")
    house.until(lambda: house.records[int(number)]["device_id"], "a repeat")
    tool.opens(house.push("behind a repeat", number), "behind a repeat")


def another_token(house, tool, former):
    """Another id with the same pair; the old one is forgotten behind the new one's confirmation."""
    tool("token")
    number = tool.is_active("another token")
    old, new = house.registrations()[-2:]
    expect((number == former, new["push_public_key"]), (False, old["push_public_key"]), "another token")
    expect((house.forgotten(), list(house.records)), ([former], [int(number)]), "the old id")
    tool.opens(house.push("another token", number), "another token")
    return number


def vanished(house, tool, number):
    """A record that is refused, and one that ends by itself while the phone listens, behind the loss of a queue."""
    begun = len(house.registrations())
    house.refuses = 1
    with house.changed:
        house.drop(int(number))
    tool("status", status=69)
    house.until(lambda: house.refuses == 0 and int(number) not in house.records, "a refusal")
    tool("repeat")
    forms = house.registrations()[begun - 1:]
    for former, form in zip(forms, forms[1:]):
        same(former, form, "behind a refusal")
    expect((len(forms), tool.is_active("behind a refusal")), (3, number), "behind a refusal")
    words = ("listen", "--count", "1", "--for", "25")
    queues, begun = len(house.queues), len(house.registrations())
    listens = tool.start(*words)
    try:
        house.until(lambda: len(house.queues) > queues, "a phone that listens")
        house.loses_queue, queues = True, queues + 1
        # Another one beside those that are not closed, in place of the lost one.
        house.until(lambda: house.lost_queues == 2 and len(house.queues) == queues, "a lost queue")
        with house.changed:
            house.drop(int(number))
        house.until(lambda: len(house.registrations()) > begun and house.records.get(int(number), {}).get("device_id"),
                    "a record that came back")
        said = house.push("a record that came back", number)
        shown = tool.end(listens, words)
    finally:
        listens.kill()
    expect(said in shown, True, f"a record that came back: {shown[-300:]!r}")
    same(*house.registrations()[-2:], "a record that came back")
    expect(re.search("fail", shown), None, "what the phone says of a record that came back")


def restore(house, tool, former):
    """Another id and other keys; the former is another phone's now."""
    tool("restore")
    number = tool.is_active("restored")
    old, new = house.registrations()[-2:]
    expect((number == former, new["push_public_key"] == old["push_public_key"]), (False, False), "restored")
    expect((sorted(house.records), former in house.forgotten()), (sorted([int(former), int(number)]), False),
           "the former id")
    tool.opens(house.push("restored", number), "restored")
    return number


def another_key(house, tool):
    """A key that is good no more: the user is told to log in again, and does."""
    house.key, begun = secrets.token_urlsafe(24), len(house.registrations())
    told = tool.status(1)
    expect((told["advice"], len(house.registrations())), ("log_in_again", begun), "a key that is good no more")
    tool("join", house.url, "--user", USER, "--key", house.key)
    tool.is_active("logged in again")


def served(folder):
    need_modules("nacl", "requests")
    folder = pathlib.Path(folder)
    with relay(folder) as run:
        house = House(run)
        with serving(house):
            talk(house, Tool(folder, house), folder / "state")
        return None, f"{len(house.calls)} calls of our phone, ids as text, no notes, {house.lost_queues} queues lost"


ROWS = [("Python as server of our phone", served)]
