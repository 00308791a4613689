"""What must not be in the relay's memory: every value of the trial that somebody could recognise, and the bytes by which
it would be found there.
"""
import base64
import binascii
import json
import re

# Fewer could be there by chance.
LEAST_BYTES = 8
# Of a longer value parts are looked for as well: an allocator writes into the beginning of a block that was given back,
# and a block that is used again covers one end. More than a register's 16, which the system saves on stacks.
PART_BYTES, STEP_BYTES, MOST_PARTS = 24, 8, 64


def bytes_of(text):
    """What a text in hexadecimal digits, base64 or base64url stands for; `None` for another."""
    digits = text.removeprefix("0x").replace("-", "")
    if digits.isdecimal():
        return None
    if re.fullmatch(r"(?:[0-9a-fA-F]{2}){8,}", digits):
        return bytes.fromhex(digits)
    if re.fullmatch(r"[A-Za-z0-9+/_-]{22,}={0,2}", text):
        try:
            bare = text.rstrip("=").translate(str.maketrans("-_", "+/"))
            return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
        except (binascii.Error, ValueError):
            return None
    return None


def leaves(value, name):
    """Texts in a value of JSON, and in JSON that stands in its texts; each with a name."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, f"{name} {key}")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from leaves(each, f"{name}.{number}")
    elif isinstance(value, str):
        try:
            inner = json.loads(value) if value[:1] in ("[", "{") else None
        except ValueError:
            inner = None
        if inner is not None:
            yield from leaves(inner, name)
        elif value.startswith("-----BEGIN"):
            yield name, "".join(value.splitlines()[1:-1])
        else:
            for part in value.split():
                yield name, part


# What stands around the number in a public RSA key of 2,048 bits: the same in all of them, and so in trust roots too.
RSA_HEAD, RSA_HEAD_BYTES, RSA_TAIL_BYTES = bytes.fromhex("30820122300d0609"), 33, 5


def secrets_of(value, name, public):
    """Values to look for in a piece of JSON, by their names: keys, tokens, ciphertexts, ids. Addresses and words are none.

    public: bytes that everybody knows; whatever holds some of them is none either.
    """
    for place, text in leaves(value, name):
        data = bytes_of(text)
        if data is None and re.fullmatch(r"[^/]{12,}:[A-Za-z0-9_-]{60,}", text):
            data = text.encode()
        if data is None or len(data) < LEAST_BYTES or any(each in data for each in public):
            continue
        if data.startswith(RSA_HEAD):
            data = data[RSA_HEAD_BYTES:-RSA_TAIL_BYTES]
        yield place, data
        # What does not come out of the bytes' own forms.
        if re.search("[-]|^0x", text) and text.isascii():
            yield place + ", as a text", text.encode()


def keys_of(text, public):
    """What works of the text of a key file, with a name: the bytes of words, a curve's scalar, a modulus's primes.

    public: words that are nobody's secret.
    """
    if "PRIVATE KEY" not in text:
        for number, word in enumerate(each.strip('",:') for each in text.split()):
            data = None if word in public else bytes_of(word)
            if data:
                yield f", {number}", data
        return
    der = base64.b64decode("".join(text.strip().splitlines()[1:-1]))
    at = der.find(b"\x02\x01\x01\x04\x20")
    if at >= 0:
        yield ", scalar", der[at + 5:at + 37]
        return
    # Each integer of RFC 8017's RSAPrivateKey of 2,048 bits; the fourth and fifth are the primes.
    at, numbers = der.find(b"\x02\x01\x00\x02\x82"), []
    while at >= 0 and at < len(der) and der[at] == 2:
        head = 2 + (der[at + 1] & 0x7F if der[at + 1] & 0x80 else 0)
        length = int.from_bytes(der[at + 2:at + head], "big") if head > 2 else der[at + 1]
        numbers.append(der[at + head:at + head + length].lstrip(b"\0"))
        at += head + length
    for name, number in zip((", prime p", ", prime q"), numbers[4:6]):
        yield name, number


def forms(data):
    """A value as it is and as texts and numbers would have it, by the form's name."""
    yield "bytes", data
    yield "turned round", data[::-1]
    yield "64-bit numbers", b"".join(data[at:at + 8][::-1] for at in range(0, len(data), 8))
    yield "UTF-16", data.decode("latin-1").encode("utf-16-le")
    yield "hex", data.hex().encode()
    yield "HEX", data.hex().upper().encode()
    # At each of the three places that the first byte can have, without what its neighbours change.
    for shift in range(3):
        text = base64.b64encode(bytes(shift) + data).rstrip(b"=")
        text = text[shift + 1 if shift else 0:len(text) - (1 if (shift + len(data)) % 3 else 0)]
        yield f"base64, {shift}", text
        url = text.translate(bytes.maketrans(b"+/", b"-_"))
        if url != text:
            yield f"base64url, {shift}", url


def parts(form):
    """The form, whole and in parts, each once."""
    yield form
    step = max(STEP_BYTES, -(-len(form) // MOST_PARTS))
    if len(form) > PART_BYTES:
        for at in range(0, len(form) - PART_BYTES, step):
            yield form[at:at + PART_BYTES]
        yield form[-PART_BYTES:]
