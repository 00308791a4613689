"""Status's messages and seals in Python: PyPI's protobuf writes, coincurve signs, pycryptodome hashes and encrypts."""
import hashlib
import hmac
import os

import coincurve
from Crypto.Cipher import AES
from Crypto.Hash import SHAKE256, keccak
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

ADVERTISEMENT, REGISTRATION, REGISTRATION_RESPONSE, QUERY, QUERY_RESPONSE, REQUEST, RESPONSE = range(15, 22)
ROUNDS = 65356
BLOCK = 256

# Fields by number, from 1 on; `*` stands before one that repeats, `-` for a number that has none.
FIELDS = {
    "Metadata": "bytes signature, bytes payload, int32 type",
    "Registration": "int32 token_type, string device_token, string installation_id, string access_token, bool enabled, "
                    "uint64 version, *bytes allowed_key_list, *bytes blocked_chat_list, bool unregister, bytes grant, "
                    "bool allow_from_contacts_only, string apn_topic, bool block_mentions, "
                    "*bytes allowed_mentions_chat_list, *bytes muted_chat_list",
    "RegistrationResponse": "bool success, int32 error, bytes request_id",
    "Query": "*bytes public_keys",
    "Info": "string access_token, string installation_id, bytes public_key, *bytes allowed_key_list, bytes grant, "
            "uint64 version, bytes server_public_key",
    "QueryResponse": "*Info info, bytes message_id, bool success",
    "Push": "string access_token, bytes chat_id, bytes public_key, string installation_id, bytes message, int32 type, "
            "bytes author",
    "Request": "*Push requests, bytes message_id",
    "Report": "bool success, int32 error, bytes public_key, string installation_id",
    "Response": "bytes message_id, *Report reports",
    "Code": "*Info info",
}


def messages():
    file = descriptor_pb2.FileDescriptorProto(name="status.proto", package="status", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for number, field in enumerate(fields.split(", "), 1):
            kind, title = field.lstrip("*").split(" ")
            label = kinds.LABEL_REPEATED if field.startswith("*") else kinds.LABEL_OPTIONAL
            added = message.field.add(name=title, number=number, label=label)
            if kind in FIELDS:
                added.type, added.type_name = kinds.TYPE_MESSAGE, f".status.{kind}"
            else:
                added.type = getattr(kinds, f"TYPE_{kind.upper()}")
    protocol = file.message_type.add(name="Protocol")
    protocol.field.add(name="installation_id", number=2, label=1, type=kinds.TYPE_STRING)
    protocol.field.add(name="public_message", number=102, label=1, type=kinds.TYPE_BYTES)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    names = [*FIELDS, "Protocol"]
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"status.{name}")) for name in names}


KINDS = messages()


def kec(*parts):
    return keccak.new(digest_bits=256, data=b"".join(parts)).digest()


def shake(data):
    return SHAKE256.new(data).read(64)


class Key(coincurve.PrivateKey):
    @property
    def long(self):
        return self.public_key.format(compressed=False)

    @property
    def short(self):
        return self.public_key.format()

    @property
    def person(self):
        return shake(self.short)

    @property
    def author(self):
        return shake(b"0x" + self.long.hex().encode())

    def signed(self, *parts):
        return self.sign_recoverable(kec(*parts), hasher=None)

    def shared(self, public):
        return coincurve.PublicKey(public).multiply(self.secret).format(compressed=False)[1:33]


def signer(signature, *parts):
    return coincurve.PublicKey.from_signature_and_message(signature, kec(*parts), hasher=None).format(compressed=False)


def grant(client, server, token):
    return client.signed(client.short, server, token.encode())


def box(plain, key):
    cipher = AES.new(key, AES.MODE_GCM, nonce=os.urandom(12))
    text, tag = cipher.encrypt_and_digest(plain)
    return cipher.nonce + text + tag


def unboxed(sealed, key):
    return AES.new(key, AES.MODE_GCM, nonce=sealed[:12]).decrypt_and_verify(sealed[12:-16], sealed[-16:])


def wrapped(payload, kind, key):
    return KINDS["Metadata"](signature=key.signed(payload), payload=payload, type=kind).SerializeToString()


def unwrapped(data):
    """Payload, type, signer, message id."""
    message = KINDS["Metadata"].FromString(data)
    author = signer(message.signature, message.payload)
    return message.payload, message.type, author, kec(author, data)


# 26/WAKU2-PAYLOAD, version 1.

def body(data, key):
    # As few bytes as it takes, and one at least.
    length = len(data).to_bytes(max(1, (len(data).bit_length() + 7) // 8), "little")
    plain = bytes([len(length) | 4]) + length + data
    plain += os.urandom(BLOCK - (len(plain) + 65) % BLOCK)
    return plain + key.signed(plain)


def read_body(plain):
    """Data and signer."""
    count, is_signed = plain[0] & 3, plain[0] & 4
    start = 1 + count
    length = int.from_bytes(plain[1:start], "little")
    return plain[start:start + length], signer(plain[-65:], plain[:-65]) if is_signed else None


def derived(shared):
    key = hashlib.sha256(b"\0\0\0\1" + shared).digest()
    return key[:16], hashlib.sha256(key[16:]).digest()


def sealed_to(data, public, key):
    once = Key()
    cipher, mac = derived(once.shared(public))
    iv = os.urandom(16)
    text = AES.new(cipher, AES.MODE_CTR, nonce=b"", initial_value=iv).encrypt(body(data, key))
    return once.long + iv + text + hmac.digest(mac, iv + text, "sha256")


def opened_by(payload, key):
    cipher, mac = derived(key.shared(payload[:65]))
    iv, text = payload[65:81], payload[81:-32]
    if not hmac.compare_digest(hmac.digest(mac, iv + text, "sha256"), payload[-32:]):
        raise ValueError("another code")
    return read_body(AES.new(cipher, AES.MODE_CTR, nonce=b"", initial_value=iv).decrypt(text))


def topic_key(name):
    return hashlib.pbkdf2_hmac("sha256", name.encode(), b"", ROUNDS, 32)


def sealed_for(data, name, key):
    cipher = AES.new(topic_key(name), AES.MODE_GCM, nonce=os.urandom(12))
    text, tag = cipher.encrypt_and_digest(body(data, key))
    return text + tag + cipher.nonce


# Topics.

def content_topic(name):
    return f"/waku/1/0x{kec(name.encode())[:4].hex()}/rfc26"


def partitioned(public):
    return f"contact-discovery-{int.from_bytes(public[1:33]) % 5000}"


def personal(public):
    return f"contact-discovery-{public.hex()}"


def contact_code(public):
    return f"0x{public.hex()}-contact-code"
