"""Device and origin of Zulip's protocol in Python: PyNaCl seals and opens, PyPI's `requests` speaks, as a Zulip
server's own code does. Nothing of it is ours but this file, which follows the protocol's description alone.
"""
import base64
import hashlib
import json
import secrets
import time
import uuid

import requests
import requests.adapters
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox
from nacl.secret import SecretBox

from tools import Failed, expect

PREFIX = "/api/v1/remotes/"
TIMEOUT_SECONDS = 15  # as a Zulip server has it
QUIET_SECONDS = 0.4
BUNDLE = "org.example.sandbox"
TAG = b"\x31"


def b64(data):
    return base64.b64encode(data).decode()


class NamedAddress(requests.adapters.HTTPAdapter):
    """Connects to loopback under another host's name, as if its DNS said so."""

    def __init__(self, host):
        self.host = host
        super().__init__()

    def init_poolmanager(self, *arguments, **options):
        super().init_poolmanager(*arguments, **options, server_hostname=self.host, assert_hostname=self.host)


class Door:
    """One relay, and what a Zulip server says to it."""

    def __init__(self, url, host=None, authority=None):
        self.url, self.host = url, host
        self.session = requests.Session()
        self.session.trust_env = False
        if authority:
            self.session.verify = str(authority)
        if host:
            self.session.mount("https://", NamedAddress(host))

    def ask(self, method, path, auth=None, form=None, body=None, headers=None):
        fields = {"User-agent": "ZulipServer/12.0", **(headers or {})}
        if self.host:
            fields["Host"] = self.host
        if body is not None:
            fields["Content-type"] = "application/json"
        return self.session.request(
            method, self.url + PREFIX + path, auth=auth, data=form if body is None else body, headers=fields,
            timeout=TIMEOUT_SECONDS, allow_redirects=False)


def answered(answer, status, what, code=None):
    """The answer's JSON; raises unless status and code are as wanted."""
    if answer.status_code != status:
        raise Failed(f"{what}: {answer.status_code} instead of {status}: {answer.text[:200]}")
    told = answer.json()
    expect(told["result"], "success" if status == 200 else "error", what)
    if code is not None:
        expect(told.get("code"), code, what)
    return told


class Phone:
    """The device's half: a push key, a token, and nobody but itself who can open."""

    def __init__(self, kind, account):
        self.kind, self.account = kind, account
        self.token = secrets.token_hex(32).upper() if kind == "apns" else \
            secrets.token_urlsafe(16) + ":APA91b" + secrets.token_urlsafe(100)
        self.key = secrets.token_bytes(32)
        self.key_id = secrets.randbits(32)
        self.token_id = b64(hashlib.sha256(self.token.encode()).digest()[:8])

    @property
    def push_key(self):
        return b64(TAG + self.key)

    def register(self, bouncer_key, timestamp=None, **changes):
        plain = {"token_kind": self.kind, "token": self.token, "timestamp": timestamp or int(time.time())}
        if self.kind == "apns":
            plain["ios_app_id"] = BUNDLE
        plain.update(changes)
        box = SealedBox(PublicKey(base64.b64decode(bouncer_key)))
        return b64(box.encrypt(json.dumps(plain).encode()))

    def open(self, encrypted):
        return json.loads(SecretBox(self.key).decrypt(base64.b64decode(encrypted, validate=True)))


class Server:
    """The origin's half: it knows phones by key, key id and token id, never by token."""

    def __init__(self, door, bouncer_key, host="chat.example.org"):
        self.door, self.bouncer_key, self.host = door, bouncer_key, host
        self.id = str(uuid.uuid4())
        self.key = secrets.token_hex(32)
        self.realm = str(uuid.uuid4())

    @property
    def auth(self):
        return (self.id, self.key)

    def sign_up(self, **changes):
        form = {"zulip_org_id": self.id, "zulip_org_key": self.key, "hostname": self.host,
                "contact_email": "admin@acme.test", **changes}
        return self.door.ask("POST", "server/register", form=form)

    def analytics(self, counts=()):
        realm = {"id": 2, "host": self.host, "url": f"https://{self.host}", "name": "Zażółć 🔔", "org_type": 0,
                 "date_created": time.time(), "deactivated": False, "is_system_bot_realm": False,
                 "authentication_methods": {"Email": True}, "uuid": self.realm,
                 "uuid_owner_secret": secrets.token_hex(20)}
        rows = [{"property": "active_users_audit:is_bot:day", "subgroup": "false", "end_time": 1.0, "value": 1,
                 "realm": 2, "id": number} for number in counts]
        form = {"realm_counts": json.dumps(rows), "installation_counts": "[]", "realmauditlog_rows": "[]",
                "realms": json.dumps([realm]), "version": json.dumps("12.0"), "merge_base": json.dumps(""),
                "api_feature_level": json.dumps(468)}
        return self.door.ask("POST", "server/analytics", auth=self.auth, form=form)

    def register(self, phone, blob=None, **changes):
        form = {"realm_uuid": self.realm, "token_id": phone.token_id,
                "encrypted_push_registration": blob or phone.register(self.bouncer_key),
                "bouncer_public_key": self.bouncer_key, **changes}
        return self.door.ask("POST", "push/e2ee/register", auth=self.auth, form=form)

    def item(self, phone, content, aps=None):
        payload = {"push_key_id": phone.key_id, "encrypted_data": b64(SecretBox(phone.key).encrypt(
            json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()))}
        if aps is not None:
            payload["aps"] = aps
        item = {"token_id": phone.token_id, "payload": payload}
        removes = content["type"] == "remove"
        if phone.kind == "apns":
            item["http_headers"] = {"apns_priority": 5 if removes else 10,
                                    "apns_push_type": "background" if removes else "alert"}
        else:
            item["fcm_priority"] = "normal" if removes else "high"
        return item

    def notify(self, items, realm=None, headers=None):
        body = json.dumps({"realm_uuid": realm or self.realm, "push_requests": items})
        return self.door.ask("POST", "push/e2ee/notify", auth=self.auth, body=body.encode(), headers=headers)


class Services:
    """The simulated push services, read through the sandbox's control endpoint."""

    def __init__(self, url):
        self.url = url
        self.seen = {"production": 0, "fcm": 0}
        self.session = requests.Session()
        self.session.trust_env = False

    def deliveries(self, name):
        """How many have come that nobody has looked at, a thousand at most."""
        return len(self.session.get(f"{self.url}/{name}/deliveries?after={self.seen[name]}&limit=1000",
                                    timeout=TIMEOUT_SECONDS).json())

    def arrived(self, name, count):
        """The next `count` deliveries, each accepted once, in order."""
        found, ends = [], time.monotonic() + TIMEOUT_SECONDS
        while len(found) < count and time.monotonic() < ends:
            page = self.session.get(f"{self.url}/{name}/deliveries?after={self.seen[name]}&limit=1000",
                                    timeout=TIMEOUT_SECONDS).json()
            if page:
                self.seen[name] = page[-1]["number"]
                found += page
            else:
                time.sleep(0.02)
        expect(len(found), count, f"deliveries at {name}")
        expect([each for each in found if each["isDouble"]], [], f"doubles at {name}")
        for each in found:
            each["json"] = json.loads(base64.b64decode(each["body"]))
        return found

    def nothing_more(self, what):
        """Raises where anything has come, or comes within a moment, that nobody has looked at."""
        time.sleep(QUIET_SECONDS)
        for name, last in self.seen.items():
            page = self.session.get(f"{self.url}/{name}/deliveries?after={last}&limit=1000",
                                    timeout=TIMEOUT_SECONDS).json()
            expect(len(page), 0, f"{what}: deliveries at {name} beyond the expected ones")

    def set_device(self, name, phone, state):
        device = {"token": phone.token, "state": state}
        device.update({"topics": [BUNDLE]} if name == "production" else {"project": "sandbox"})
        answer = self.session.post(f"{self.url}/{name}/devices", json=[device], timeout=TIMEOUT_SECONDS)
        expect(answer.status_code, 200, "the control endpoint")


def must_not_open(phone, encrypted):
    try:
        phone.open(encrypted)
    except CryptoError:
        return
    raise Failed("another phone's key opened the notification")


def stranger_key():
    return b64(bytes(PrivateKey.generate().public_key))
