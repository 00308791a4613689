"""A relay with every protocol as a process of its own, and beside it, as processes too, what it talks to: simulated
push services and networks, an origin, and phones of the command line.
"""
import contextlib
import json
import pathlib
import secrets
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from servers import free_port, running

# The longest that anything on this machine may take; a command waits for less.
PATIENCE_SECONDS = 120
BUNDLE = "org.acme.chat"
PEERS = """listeners: {{ public: {{ bind: '127.0.0.1:0', serves: [relay-keys] }}, admin: {{ bind: '127.0.0.1:0' }} }}
apps:
  acme:
    apns: {{ team: A1B2C3D4E5, key_id: F6G7H8I9J0, key_file: apns.p8, bundles: [{bundle}], environment: learn }}
    fcm: {{ service_account: fcm.json }}
instances:
  relay-keys: {{ {first} }}
"""
RELAY = """listeners:
  public: {{ bind: '127.0.0.1:0', serves: [{served}] }}
  admin: {{ bind: '127.0.0.1:0', token_file: admin.token }}
log: {{ level: debug }}
store: {{ url: 'sqlite:relay.sqlite', keys: storage.keys }}
apps:
  acme:
    apns: {{ team: A1B2C3D4E5, key_id: F6G7H8I9J0, key_file: {made}/A1B2C3D4E5-F6G7H8I9J0.p8, bundles: [{bundle}],
            environment: learn, url: '{apns}', sandbox_url: '{development}', ca: {made}/ca.pem }}
    fcm: {{ service_account: {made}/acme-fcm.json, url: '{fcm}', token_url: '{fcm}/token', ca: {made}/ca.pem }}
instances:
{instances}"""
ORIGIN = """listeners: {{ origin: {{ bind: '127.0.0.1:{port}' }}, admin: {{ bind: '127.0.0.1:0' }} }}
store: {{ url: 'sqlite:origin.sqlite', keys: origin.keys }}
origin: {{ url: 'http://127.0.0.1:{port}', contact: admin@origin.test, credentials: credentials.json,
  {more}relay: {{ url: '{relay}' }} }}
"""


class Failed(Exception):
    """The stage does not do what it should; the text says what."""


def wait_for(what, ready, seconds=PATIENCE_SECONDS):
    """What `ready` gives, once that is something."""
    ends = time.monotonic() + seconds
    while True:
        found = ready()
        if found:
            return found
        if time.monotonic() > ends:
            raise Failed(f"{what}: not within {seconds} s")
        time.sleep(0.1)


class Stage:
    """`folder` is nobody else's to read."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    # What is started.

    def facts(self, state):
        return json.loads((self.folder / state / "run.json").read_text())

    @contextlib.contextmanager
    def served(self, name, *words):
        file = self.folder / name / "run.json"
        with running([self.program, *words, "--config", f"{name}.yaml", "--state", name], self.folder, file.exists,
                     f"{name}.log", absent=Failed) as process:
            yield process

    @contextlib.contextmanager
    def relay(self, protocols):
        """Everything; yields the relay's process."""
        self.keep("admin.token", secrets.token_hex(24))
        self.command("keys", "new", "storage", "--file", "storage.keys")
        self.command("keys", "new", "storage", "--file", "origin.keys")
        for each in protocols:
            if each.KEY:
                self.command("keys", "new", each.KEY, "--file", each.KEY_FILE)
        first = next(each.INSTANCE for each in protocols if each.SERVED).format(urls={}, ca="")
        (self.folder / "peers.yaml").write_text(PEERS.format(bundle=BUNDLE, first=first))
        with self.served("peers", "sandbox"):
            self.urls = self.facts("peers")["urls"]
            made = self.folder / "peers/sandbox"
            self.ca = made / "ca.pem"
            instances = "".join(
                f"  {each.NAME}: {{ {each.INSTANCE.format(urls=self.urls, ca=self.ca)} }}\n" for each in protocols)
            (self.folder / "relay.yaml").write_text(RELAY.format(
                served=", ".join(each.NAME for each in protocols if each.SERVED), made=made, bundle=BUNDLE,
                apns=self.urls["sandbox-apns"], development=self.urls["sandbox-apns-development"],
                fcm=self.urls["sandbox-fcm"], instances=instances))
            with self.served("relay", "serve") as relay:
                self.public = self.facts("relay")["urls"]["public"]
                self.origin_port = free_port()
                (self.folder / "origin.yaml").write_text(ORIGIN.format(
                    port=self.origin_port, relay=self.public,
                    more="".join(getattr(each, "ORIGIN", "") for each in protocols)))
                with self.served("origin", "origin"):
                    self.command("origin", "sign-up", "--at", "origin")
                    self.command("origin", "realm", "add", "acme", "--at", "origin")
                    yield relay

    # What is done.

    def command(self, *words, text=None):
        told = subprocess.run([self.program, *map(str, words)], cwd=self.folder, input=text or "", text=True,
                              capture_output=True, timeout=PATIENCE_SECONDS)
        if told.returncode:
            raise Failed(f"sealbell {' '.join(map(str, words))} ended with {told.returncode}: {told.stderr[-500:]}")
        return told.stdout

    def key(self, name):
        return self.facts("relay")["public_keys"][name][0]

    def ask(self, url, token=None):
        request = urllib.request.Request(url, headers={"Authorization": "Bearer " + token} if token else {})
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return json.loads(answer.read())

    def deliveries(self, service):
        """What a push service has accepted: its device's token and its body in base64."""
        return self.ask(f"{self.urls['sandbox-control']}/{service}/deliveries")

    def owed(self):
        token = (self.folder / "admin.token").read_text()
        return self.ask(self.facts("relay")["urls"]["admin"] + "/status", token)["outbox"]["rows"]

    def arrived(self, what, service, state):
        """Waits until something has come for the phone of a state file; a token is written in either case."""
        tokens = json.loads((self.folder / state).read_text())["token"].lower().split()

        def look():
            return [each for each in self.deliveries(service) if each["token"].lower() in tokens]
        return wait_for(what, look)

    def keep(self, name, text):
        """A file that its owner alone reads, for a command; its name."""
        (self.folder / name).touch(0o600)
        (self.folder / name).write_text(text.strip())
        return name

    def said(self, text, word):
        """What a line of a command's answer says behind a word."""
        for line in text.splitlines():
            if line.startswith(word + " "):
                return line.removeprefix(word + " ").strip()
        raise Failed(f"no {word} in what the command said")
