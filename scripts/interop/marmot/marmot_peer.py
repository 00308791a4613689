"""Marmot's token boxes in Python: coincurve and PyCA cryptography. It follows the protocol's description alone."""
import base64
import hashlib
import hmac
import json
import secrets

from coincurve import PrivateKey, PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

HEAD = 44
# Size of the plaintext, salt, info, tags of the trigger.
FORMATS = {
    "seed": (None, None, b"mip05-token-encryption", []),
    "mip05-280": (220, b"mip05-v1", b"mip05-token-encryption", []),
    "mip05-1084": (1024, b"mip05-v1", b"mip05-token-encryption", [["v", "mip05-v1"], ["encoding", "base64"]]),
    "push-v1": (1024, b"marmot-push-token-v1", b"marmot-push-token-encryption", [["v", "marmot-push-v1"]]),
}
PLATFORMS = {"apns": 1, "fcm": 2}


def mac(key, message):
    return hmac.new(key, message, hashlib.sha256).digest()


def box_key(form, secret, x):
    """The key of a box: raw X of the shared point, then HKDF in the format's manner."""
    _, salt, info, _ = FORMATS[form]
    shared = PublicKey(b"\x02" + x).multiply(secret).format(compressed=True)[1:]
    return mac(shared if salt is None else mac(salt, shared), info + b"\x01")


def seal(form, platform, token, server):
    """An encrypted token for the server's X."""
    size = FORMATS[form][0]
    if size is None:
        plain = platform.encode() + b"\0" + token
    else:
        plain = bytes([PLATFORMS[platform]]) + len(token).to_bytes(2, "big") + token
        plain += secrets.token_bytes(size - len(plain))
    once, nonce = PrivateKey(), secrets.token_bytes(12)
    return (once.public_key.format(compressed=True)[1:] + nonce
            + ChaCha20Poly1305(box_key(form, once.secret, server)).encrypt(nonce, plain, None))


def unseal(form, box, secret):
    """Platform and token; raises for what does not open."""
    plain = ChaCha20Poly1305(box_key(form, secret, box[:32])).decrypt(box[32:HEAD], box[HEAD:], None)
    size = FORMATS[form][0]
    if size is None:
        platform, token = plain.split(b"\0", 1)
        return platform.decode(), token
    if len(plain) != size:
        raise ValueError("size")
    count = int.from_bytes(plain[1:3], "big")
    return {1: "apns", 2: "fcm"}[plain[0]], plain[3:3 + count]


def content(form, boxes):
    if form == "seed":
        return json.dumps([box.hex() for box in boxes])
    return base64.b64encode(b"".join(boxes)).decode()


def boxes_of(form, text):
    if form == "seed":
        return [bytes.fromhex(each) for each in json.loads(text)]
    blob = base64.b64decode(text, validate=True)
    step = FORMATS[form][0] + HEAD + 16
    if len(blob) % step:
        raise ValueError("length")
    return [blob[at:at + step] for at in range(0, len(blob), step)]
