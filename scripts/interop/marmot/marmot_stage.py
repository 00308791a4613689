"""A serving `sealbell serve` as a Marmot server, with simulated push services, and PyPI's nostr-sdk to wake it.
Token boxes are sealed and opened by Python's own cryptography.
"""
import base64
import collections
import contextlib
import json
import pathlib
import re
import secrets
import subprocess
import sys
import time
import urllib.error
import urllib.request

from tools import SEALBELL, Failed, expect, guide_block, need_modules, running

HERE = pathlib.Path(__file__).resolve().parent
WAIT_SECONDS = 60
APNS_KEY = "A1B2C3D4E5-F6G7H8I9J0.p8"  # the guide's team and key


def until(what, ask):
    """Asks again until the answer is not None; for what only a page or a list of another process tells."""
    ends = time.monotonic() + WAIT_SECONDS
    while (found := ask()) is None:
        if time.monotonic() > ends:
            raise Failed(f"{what}: not within {WAIT_SECONDS} s")
        time.sleep(0.02)
    return found


def page(url):
    """A local page; `None` while it does not answer 200."""
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=WAIT_SECONDS) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError:
        return None


class Services:
    """The simulated push services, read through their control endpoint."""

    def __init__(self, url):
        self.url = url
        self.seen = {"production": 0, "fcm": 0}
        self.woken = collections.Counter()

    def read(self):
        for name in self.seen:
            while found := json.loads(page(f"{self.url}/{name}/deliveries?after={self.seen[name]}&limit=1000") or "[]"):
                self.seen[name] = found[-1]["number"]
                for each in found:
                    body = json.loads(base64.b64decode(each["body"]))
                    if name == "production":
                        expect(body, {"aps": {"content-available": 1}}, "Apple's body")
                    else:
                        expect(body["message"]["data"], {"content_available": "true"}, "Google's data")
                    self.woken[each["token"]] += 1

    def all_of(self, tokens):
        """Waits until each of these was woken; the count of what came, of all tokens."""
        def ask():
            self.read()
            return True if all(self.woken[each] for each in tokens) else None
        try:
            until("pushes", ask)
        except Failed:
            lost = sum(not self.woken[each] for each in tokens)
            raise Failed(f"{lost} of {len(tokens)} were not woken within {WAIT_SECONDS} s")

    def each_once(self, tokens):
        """After something later has arrived: these were woken once each, and nobody else was."""
        self.read()
        doubled = {each: count for each, count in self.woken.items() if count > 1}
        expect(len(doubled), 0, "doubled")
        strangers = set(self.woken) - set(tokens)
        expect(len(strangers), 0, "woken without a trigger")


class Server:
    """What a row knows of a serving process."""

    def __init__(self, key, stand_ins, admin):
        """`stand_ins`: addresses of the simulated push services."""
        self.key, self.stand_ins, self.admin = key, stand_ins, admin
        self.services = Services(stand_ins["sandbox-control"])
        self.sent = []

    def metric(self, name):
        text = page(self.admin + "/metrics") or ""
        rows = re.findall(rf"^{name}(?:\{{.*\}})? (\d+)", text, re.MULTILINE)
        return sum(int(row) for row in rows)

    def listens_at(self, count):
        until(f"listening at {count} relays", lambda: self.metric("sealbell_nostr_relays_connected") == count or None)

    def wake(self, triggers, lookup, to=None, proves=False):
        """Publishes triggers by nostr-sdk; each relay takes each. The server's relay list, as far as looked up."""
        job = {"server": self.key, "lookup": lookup, "to": to, "proves": proves,
               "triggers": [trigger for trigger, _ in triggers]}
        told = nostr_sdk("wake", job)
        if told["list"] is None:
            raise Failed("nostr-sdk found no relay list (kind 10050) of ours")
        for each in told["sent"]:
            expect(each["taken"], sorted(to or told["list"]), f"relays that took a wrap ({each['refused']})")
        self.sent += [token for _, tokens in triggers for token in tokens]
        return told["list"]

    def wakes_each_once(self, triggers, lookup, **how):
        told = self.wake(triggers, lookup, **how)
        self.services.all_of(self.sent)
        return told

    def settle(self, lookup, **how):
        """A last trigger behind all others; then nothing may have come twice."""
        self.wakes_each_once([trigger("push-v1", self.key)], lookup, **how)
        self.services.each_once(self.sent)


def nostr_sdk(verb, job):
    need_modules("nostr_sdk", "coincurve", "cryptography")
    try:
        told = subprocess.run([sys.executable, str(HERE / "nostr_client.py"), verb], input=json.dumps(job), text=True,
                              capture_output=True, timeout=5 * WAIT_SECONDS)
    except subprocess.TimeoutExpired as late:
        raise Failed(f"nostr-sdk had not ended its {verb}") from late
    if not told.stdout.strip():
        raise Failed(f"nostr-sdk's {verb}: " + told.stderr.strip()[-300:])
    return json.loads(told.stdout)


def trigger(form, server, sealed=True, devices=("apns", "fcm")):
    """A trigger for fresh devices, one of each kind, and their tokens as the push services name them."""
    from . import marmot_peer
    boxes, tokens = [], []
    for platform in devices:
        raw = secrets.token_bytes(32) if platform == "apns" else \
            f"{secrets.token_urlsafe(16)}:APA91b{secrets.token_urlsafe(88)}".encode()
        boxes.append(marmot_peer.seal(form, platform, raw, bytes.fromhex(server)))
        tokens.append(raw.hex() if platform == "apns" else raw.decode())
    return {"content": marmot_peer.content(form, boxes), "tags": marmot_peer.FORMATS[form][3], "sealed": sealed}, tokens


def each_format(server):
    from . import marmot_peer
    return [trigger(form, server) for form in marmot_peer.FORMATS] + [trigger("seed", server, sealed=False)]


@contextlib.contextmanager
def started(command, folder, state, log_name):
    """A process of ours up to its run file, ended by its id; it must end in good order."""
    file = state / "run.json"
    with running(command, folder, file.exists, log_name, absent=Failed) as process:
        yield json.loads(file.read_text())
        if process.poll() is not None:
            raise Failed(f"{command[1]} ended with {process.returncode}")
    if process.returncode != 0:
        raise Failed(f"{command[1]} ended with {process.returncode} when asked to stop")


def stand_in(url, made):
    """A push service's address and authority, as the configuration has them."""
    return f"url: \"{url}\", ca: {made / 'ca.pem'}"


def guide(*changes):
    return guide_block("yaml", ('"127.0.0.1:8481"', '"127.0.0.1:0"'), *changes, guide="marmot")


@contextlib.contextmanager
def serving(folder, relays, before=None, extra=(), wrapper=()):
    """`sealbell serve` by the guide's configuration at these relays, with simulated services in Apple's and
    Google's place.

    - before: called with the server's public key before it starts.
    - wrapper: a command that runs the server.
    """
    need_modules("nostr_sdk", "coincurve", "cryptography")
    told = subprocess.run([SEALBELL, "keys", "new", "nostr", "--file", str(folder / "nostr.key")], text=True,
                          capture_output=True, stdin=subprocess.DEVNULL)
    key = re.search(r"\b[0-9a-f]{64}\b", told.stdout)
    if told.returncode or key is None:
        raise Failed("sealbell keys new nostr: " + told.stderr.strip()[-200:])
    subprocess.run([SEALBELL, "keys", "new", "storage", "--file", str(folder / "storage.keys")], check=True,
                   capture_output=True, stdin=subprocess.DEVNULL)
    services, state = folder / "services", folder / "state"
    (folder / "services.yaml").write_text(guide(("/var/lib/sealbell", str(services))))
    command = [SEALBELL, "sandbox", "--config", str(folder / "services.yaml")]
    with started(command, folder, services, "services.log") as stand_ins:
        urls, made = stand_ins["urls"], services / "sandbox"
        (folder / "sealbell.yaml").write_text(guide(
            ("/var/lib/sealbell", str(state)),
            ("key_file: apns.p8", f"key_file: {made / APNS_KEY}, {stand_in(urls['sandbox-apns'], made)}"),
            ("service_account: fcm.json",
             # The account names localhost; by its address nobody looks a name up.
             f"service_account: {made / 'acme-chat-fcm.json'}, {stand_in(urls['sandbox-fcm'], made)}, "
             f"token_url: \"{urls['sandbox-fcm']}/token\""),
            ('["wss://relay.acme.example", "wss://relay.example.org"]', json.dumps(relays))))
        if before:
            before(key[0])
        command = [*wrapper, SEALBELL, "serve", "--config", str(folder / "sealbell.yaml"),
                   "--set", f"store.keys={folder / 'storage.keys'}"]
        for setting in extra:
            command += ["--set", setting]
        with started(command, folder, state, "serve.log") as run:
            server = Server(key[0], urls, run["urls"]["admin"])
            server.listens_at(len(relays))
            until("ready", lambda: page(server.admin + "/health/ready"))
            yield server
