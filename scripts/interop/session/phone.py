"""A Session device in Python: PyNaCl signs and opens, bencode2 reads and writes. It follows the protocol's
description alone.
"""
import base64
import hashlib
import hmac
import json
import os
import secrets
import struct
import time

import requests
from bencode2 import bdecode, bencode
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from nacl import bindings
from nacl.signing import SigningKey

from tools import Failed, expect

TIMEOUT_SECONDS = 30
PUSH = "/oxen/v4/lsrpc"
XCHACHA, AES = "xchacha20", "aes-gcm"
USER, GROUP = 5, 3


def b64(data, padded=True):
    text = base64.b64encode(data).decode()
    return text if padded else text.rstrip("=")


# How an app may write bytes.
SPELLINGS = {"hex": bytes.hex, "HEX": lambda data: data.hex().upper(), "base64": b64,
             "bare base64": lambda data: b64(data, padded=False)}


class Account:
    """A user's or a group's key, and whose signature stands for it."""

    def __init__(self, prefix, delegates=False):
        self.key = SigningKey.generate()
        self.public = bytes(self.key.verify_key)
        point = bytes(self.key.verify_key.to_curve25519_public_key()) if prefix == USER else self.public
        self.id = bytes([prefix]) + point
        self.is_user = prefix == USER
        self.signer, self.token = self.key, None
        if delegates:
            self.signer = SigningKey.generate()
            # Read and write.
            self.token = bytes([prefix, 3, 0, 0]) + bytes(self.signer.verify_key)
            self.token_signature = self.key.sign(self.token).signature

    @property
    def swarm_point(self):
        words = struct.unpack(">4Q", self.id[1:])
        return words[0] ^ words[1] ^ words[2] ^ words[3]


class Phone:
    """What one phone subscribes with, for one account."""

    def __init__(self, account, namespaces=(0, 2, 3, 4, 5), data=True, service="apns"):
        self.account, self.namespaces, self.data, self.service = account, list(namespaces), data, service
        self.token = secrets.token_hex(32) if service == "apns" else \
            secrets.token_urlsafe(16) + ":APA91b" + secrets.token_urlsafe(100)
        self.key = os.urandom(32)
        self.signed_at = int(time.time())

    def claim(self, text, spell):
        account = self.account
        fields = {"pubkey": spell(account.id), "sig_ts": self.signed_at, "service": self.service,
                  "service_info": {"token": self.token}, "signature": spell(account.signer.sign(text).signature)}
        if account.is_user:
            fields["session_ed25519"] = spell(account.public)
        if account.token:
            fields.update(subaccount=spell(account.token), subaccount_sig=spell(account.token_signature))
        return fields

    @property
    def monitor_text(self):
        numbers = ",".join(map(str, self.namespaces))
        return f"MONITOR{self.account.id.hex()}{self.signed_at}{int(self.data)}{numbers}".encode()

    def subscribe(self, spell=bytes.hex):
        fields = {"namespaces": self.namespaces, "data": self.data, "enc_key": spell(self.key)}
        return {**self.claim(self.monitor_text, spell), **fields}

    def unsubscribe(self, spell=bytes.hex):
        return self.claim(f"UNSUBSCRIBE{self.account.id.hex()}{self.signed_at}".encode(), spell)

    def open(self, payload):
        """Metadata, and the message where there is one."""
        sealed = base64.b64decode(payload, validate=True)
        plain = bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(sealed[24:], None, sealed[:24], self.key)
        expect(len(plain) % 256, 0, "the padded length")
        parts = bdecode(plain.rstrip(b"\0"))
        return json.loads(parts[0]), *parts[1:]


class Onion:
    """One onion request's key and cipher, and what comes back under them."""

    def __init__(self, server_key, cipher):
        public, secret = bindings.crypto_box_keypair()
        shared = bindings.crypto_scalarmult(secret, server_key)
        self.public, self.cipher = public, cipher
        if cipher == XCHACHA:
            self.key = hashlib.blake2b(shared + public + server_key, digest_size=32).digest()
        else:
            self.key = hmac.new(b"LOKI", shared, hashlib.sha256).digest()

    def seal(self, plain):
        if self.cipher == XCHACHA:
            nonce = os.urandom(24)
            return nonce + bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(plain, None, nonce, self.key)
        nonce = os.urandom(12)
        return nonce + AESGCM(self.key).encrypt(nonce, plain, None)

    def open(self, sealed):
        if self.cipher == XCHACHA:
            return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(sealed[24:], None, sealed[:24], self.key)
        return AESGCM(self.key).decrypt(sealed[:12], sealed[12:], None)

    def request(self, plain, names_cipher=True):
        """As the last storage server brings it: its own routing stands behind the ciphertext."""
        routing = {"host": "push.acme.example", "target": PUSH, "method": "POST", "protocol": "https", "port": 443,
                   "ephemeral_key": self.public.hex()}
        if names_cipher:
            routing["enc_type"] = self.cipher
        sealed = self.seal(plain)
        return struct.pack("<I", len(sealed)) + sealed + json.dumps(routing).encode()


class Door:
    """One relay, and what devices say to it."""

    def __init__(self, run, instance="session-main"):
        self.url = run["urls"]["public"]
        self.key = bytes.fromhex(run["public_keys"][instance][0])
        self.session = requests.Session()
        self.session.trust_env = False

    def post(self, path, body, content_type="application/octet-stream"):
        return self.session.post(self.url + path, data=body, headers={"Content-Type": content_type},
                                 timeout=TIMEOUT_SECONDS)

    def plain(self, path, body):
        answer = self.post(path, json.dumps(body).encode(), "application/json")
        expect(answer.status_code, 200, path)
        return answer.json()

    def by_onion(self, path, body, cipher, names_cipher=True, method="POST"):
        """Code and body of the sealed reply."""
        head = {"method": method, "endpoint": path, "headers": {"Content-Type": "application/json"}}
        inner = bencode([json.dumps(head).encode(), json.dumps(body).encode()])
        return self.brought(inner, cipher, names_cipher)

    def brought(self, inner, cipher, names_cipher=True):
        onion = Onion(self.key, cipher)
        answer = self.post(PUSH, onion.request(inner, names_cipher))
        expect(answer.status_code, 200, "an onion request")
        parts = bdecode(onion.open(answer.content))
        expect(len(parts), 2, "parts of an onion's reply")
        return json.loads(parts[0])["code"], parts[1]


class Services:
    """What reached the simulated push services, in its order."""

    def __init__(self, run):
        self.url = run["urls"]["sandbox-control"]
        self.seen = {"production": 0, "fcm": 0}
        self.session = requests.Session()
        self.session.trust_env = False

    def new(self, name):
        page = self.session.get(f"{self.url}/{name}/deliveries?after={self.seen[name]}&limit=1000",
                                timeout=TIMEOUT_SECONDS).json()
        if page:
            self.seen[name] = page[-1]["number"]
        for each in page:
            each["json"] = json.loads(base64.b64decode(each["body"]))
        return page

    def arrived(self, name, count):
        """The next `count` deliveries."""
        found, ends = [], time.monotonic() + TIMEOUT_SECONDS
        while len(found) < count:
            if time.monotonic() > ends:
                raise Failed(f"{len(found)} of {count} deliveries at {name}")
            page = self.new(name)
            found += page
            if not page:
                time.sleep(0.02)
        expect(len(found), count, f"deliveries at {name}")
        return found
