#!/usr/bin/env python3
"""Makes a second set of Zulip vectors: the schema of Tests/Vectors/zulip.json, filled with what is odd.

  vectors_odd.py --seed SEED --set NAME --out FILE     writes vectors; the same seed gives the same file

Odd JSON, base64, UUIDs and host names, sizes at their edges, times at theirs, and requests with two faults at
once, which only one order of checks answers right.  Expected values follow the specification and what deployed
software does: forms as Django reads them, JSON as pydantic does in strict mode (lenient for the sealed
registration), hosts and mail as Django's validators do.  Where a relay may be stricter the row says
"required": false.  The keys are listed with a retired one first, and the server has two realms, so that a runner
that is tuned to the other file shows.

Needs PyNaCl.
"""
import argparse
import base64
import hashlib
import json
import random
import uuid

import nacl.bindings as sodium

TAG = 0x31
DAY = 86400
FORM = ("realm_uuid", "token_id", "encrypted_push_registration", "bouncer_public_key")
APS = {"mutable-content": 1, "alert": {"title": "New notification"}}
OK = {"http": 200, "code": None}
BAD = {"http": 400, "code": "BAD_REQUEST"}
EXPIRED = {"http": 400, "code": "REQUEST_EXPIRED"}
BAD_KEY = {"http": 400, "code": "INVALID_BOUNCER_PUBLIC_KEY"}
UNKNOWN = {"http": 403, "code": "MISSING_REMOTE_REALM"}
FOREIGN = {"http": 403, "code": "REMOTE_REALM_SERVER_MISMATCH_ERROR"}
REFUSED = {"http": 401, "code": "UNAUTHORIZED"}
NOT_YOURS = {"http": 400, "code": "INVALID_ZULIP_SERVER"}


def missing(name):
    return {"http": 400, "code": "REQUEST_VARIABLE_MISSING", "var_name": name}


def b64(data):
    return base64.b64encode(data).decode()


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def token_id(token):
    return b64(hashlib.sha256(token.encode()).digest()[:8])


def seal(message, recipient, ephemeral):
    """crypto_box_seal with a given ephemeral secret key."""
    public = sodium.crypto_scalarmult_base(ephemeral)
    nonce = hashlib.blake2b(public + recipient, digest_size=24).digest()
    return public + sodium.crypto_box(message, nonce, recipient, ephemeral)


def secretbox(message, key, nonce):
    return nonce + sodium.crypto_secretbox(message, nonce, key)


def flip(data, bit):
    out = bytearray(data)
    out[bit // 8] ^= 1 << bit % 8
    return bytes(out)


def loosened(text):
    """The same bytes in base64 with the unused bits of the last digit set; `None` where it has none."""
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    pads = len(text) - len(text.rstrip("="))
    if not pads:
        return None
    last = digits[digits.index(text[-pads - 1]) | 1]
    return text[:-pads - 1] + last + "=" * pads


class Odd:
    def __init__(self, seed, name):
        self.r = random.Random("zulip-odd|" + seed)
        self.now = self.r.randint(1767225600, 1798675200)
        self.doc = {"format": "zulip-push-vectors/1", "set": name, "seed": seed,
                    "generator": "scripts/interop/zulip/vectors_odd.py", "now": self.now,
                    "conventions": ["as Tests/Vectors/zulip.json"]}

    def bytes(self, count):
        return self.r.randbytes(count)

    def hex(self, count):
        return self.bytes(count).hex()

    def word(self, count, letters="abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"):
        return "".join(self.r.choice(letters) for _ in range(count))

    def uuid(self):
        # With a letter in it, so that its upper case differs.
        while True:
            text = str(uuid.UUID(bytes=self.bytes(16), version=4))
            if any(c in "abcdef" for c in text):
                return text

    def fcm(self, count=140):
        letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
        return self.word(22, letters) + ":" + self.word(count, letters)

    # ---- world -----------------------------------------------------------------------------------------
    def world(self):
        self.pairs = []
        for status in ("retired", "active", "active"):
            secret = self.bytes(32)
            self.pairs.append((sodium.crypto_scalarmult_base(secret), secret, status))
        self.push = [self.bytes(32) for _ in range(2)]
        self.ids = [4294967295, self.r.randint(0, 2**32 - 1)]
        self.doc["keys"] = {
            "bouncer": [{"id": 7 - i, "public_key": b64(p), "private_key": b64(s), "status": t}
                        for i, (p, s, t) in enumerate(self.pairs)],
            "push_keys": [{"id": 9 - i, "push_key": b64(bytes([TAG]) + k), "secretbox_key_hex": k.hex(),
                           "push_key_id": self.ids[i]} for i, k in enumerate(self.push)]}
        self.realm, self.second, self.other, self.nobody = (self.uuid() for _ in range(4))
        self.servers = [(self.uuid(), self.word(64), False, [self.realm, self.second]),
                        (self.uuid(), self.word(64), True, []), (self.uuid(), self.word(64), False, [self.other])]
        self.doc["world"] = {"servers": [
            {"zulip_org_id": i, "zulip_org_key": k, "deactivated": d, "realms": r} for i, k, d, r in self.servers],
            "unknown_realm": self.nobody}

    # ---- values ----------------------------------------------------------------------------------------
    def values(self):
        tokens = [("apns", self.hex(1)), ("apns", self.hex(2048)), ("apns", self.hex(32).upper()), ("fcm", "\u0000"),
                  ("fcm", " leading and trailing "), ("fcm", "a\r\nb\tc"), ("fcm", "e\u0301 is not \u00e9"),
                  ("fcm", "\u202eright to left"), ("fcm", "\U0010ffff" * 16), ("fcm", "\ufeffmark"),
                  ("fcm", self.fcm()), ("fcm", "🔔" * 4096), ("fcm", "\"\\/")]
        low = self.hex(32)
        while low == low.upper():
            low = self.hex(32)
        self.doc["token_id"] = {"cases": [
            {"name": f"token_{n}", "token_kind": k, "token": t, "sha256_hex": hashlib.sha256(t.encode()).hexdigest(),
             "token_id": token_id(t),
             "token_id_signed64": int.from_bytes(base64.b64decode(token_id(t)), "big", signed=True)}
            for n, (k, t) in enumerate(tokens)],
            "case_sensitivity": {"lower": low, "upper": low.upper(), "lower_id": token_id(low),
                                 "upper_id": token_id(low.upper()), "ids_equal": False}}
        rows = [{"name": "good", "push_key": b64(bytes([TAG]) + k), "valid": True, "secretbox_key_hex": k.hex()}
                for k in (self.push[0], bytes(32), b"\xff" * 32)]
        key = bytes([TAG]) + self.push[0]
        while not set("+/") & set(b64(key)):
            key = bytes([TAG]) + self.bytes(32)
        text = b64(key)
        wrong = [b64(key[:n] + bytes(max(0, n - 33))) for n in (1, 2, 16, 31, 32, 34, 35, 65)]
        wrong += [b64(bytes([tag]) + key[1:]) for tag in (0x00, 0x01, 0x30, 0x32, 0x21, 0x71, 0xb1, 0xff)]
        wrong += [" " + text, text + " ", text[:4] + "\n" + text[4:], text + "=", text + "==", "=" + text[1:],
                  text[:-1], text + text, text[:20] + "\u0000" + text[21:], text[:20] + "é" + text[21:], "=",
                  base64.urlsafe_b64encode(key).decode(), key.hex()]
        rows += [{"name": f"wrong_{n}", "push_key": t, "valid": False} for n, t in enumerate(wrong)]
        self.doc["push_key"] = rows
        valid = ["0", "1", "10", "2147483647", "2147483648", "4294967295"]
        wrong = ["00", "01", "+1", "-1", "1.0", "1e3", "1E0", "0x10", "1_000", "1,000", "4294967296", "9007199254740993",
                 "18446744073709551616", "9" * 40, "true", "null", "NaN", "Infinity", "[1]", "{}", "\"5\"", "٣", ".5", "5.",
                 "--1", "1 2", "-", " "]
        self.doc["push_key_id"] = [{"value": v, "valid": True} for v in valid] + [
            {"value": v, "valid": False} for v in wrong]

    def boxes(self):
        out = []
        for n, size in enumerate((0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 1023, 4096)):
            public, secret, _ = self.pairs[n % 3]
            message, ephemeral = self.bytes(size), self.bytes(32)
            out.append({"name": f"{size}_bytes", "recipient_public": b64(public), "recipient_private": b64(secret),
                        "ephemeral_private": b64(ephemeral), "message_b64": b64(message),
                        "sealed_b64": b64(seal(message, public, ephemeral)), "opens": True})
        public, secret, _ = self.pairs[1]
        good = seal(b"x" * 20, public, self.bytes(32))
        # The top bit of a public key is ignored by X25519, but the nonce is made of all bits.
        bad = [("top_bit_of_the_ephemeral_key", flip(good, 255)), ("ephemeral_key_of_zeros", bytes(32) + good[32:]),
               ("ephemeral_key_of_low_order", b"\x01" + bytes(31) + good[32:]), ("only_zeros", bytes(68)),
               ("own_public_key", public + good[32:]), ("doubled", good + good), ("tag_last", good[:32] + good[48:] + good[32:48]),
               ("nonce_before", bytes(24) + good), ("for_another", seal(b"x", self.pairs[2][0], self.bytes(32)))]
        bad += [(f"cut_at_{n}", good[:n]) for n in (1, 31, 32, 33, 47, 48, 49, len(good) - 1)]
        out += [{"name": n, "recipient_public": b64(public), "recipient_private": b64(secret), "sealed_b64": b64(d),
                 "opens": False} for n, d in bad]
        self.doc["sealed_box"] = out

        cases, key = [], self.push[1]
        public, secret, _ = self.pairs[2]
        for n in range(10):
            message = self.bytes(self.r.randint(0, 90))
            for box, data in (("sealed", seal(message, public, self.bytes(32))),
                              ("secretbox", secretbox(message, key, self.bytes(24)))):
                row = {"box": box, **({"push_key_index": 1} if box == "secretbox" else {})}
                cases.append({**row, "data": b64(data), "opens": True, "message_b64": b64(message)})
                at = self.r.randrange(len(data))
                for kind, bad in ((f"bit {at * 8 + n % 8}", flip(data, at * 8 + n % 8)), (f"without {at}", data[:at] + data[at + 1:]),
                                  (f"swapped {at}", data[at:] + data[:at])):
                    if bad != data:
                        cases.append({**row, "mutation": kind, "data": b64(bad), "opens": False})
        self.doc["mutations"] = {"sealed_recipient": "keys.bouncer[2]",
                                 "secretbox_key": "keys.push_keys[push_key_index]", "cases": cases}

    def contents(self):
        key, wire, out = self.push[0], b64(bytes([TAG]) + self.push[0]), []
        for size in (0, 1, 15, 16, 17, 31, 32, 63, 64, 65, 2949, 3000):
            message, nonce = self.bytes(size), self.bytes(24)
            out.append({"name": f"{size}_bytes", "push_key": wire, "push_key_id": self.ids[0], "nonce_b64": b64(nonce),
                        "plaintext_b64": b64(message), "encrypted_data": b64(secretbox(message, key, nonce)), "decrypts": True})
        data = secretbox(b"y" * 33, key, self.bytes(24))
        text = b64(data)
        while not set("+/") & set(text) or not loosened(text):
            data = secretbox(b"y" * self.r.randint(30, 40), key, self.bytes(24))
            text = b64(data)
        bad = [("unpadded", text.rstrip("=")), ("overpadded", text + "="), ("blank_behind", text + " "), ("line_break", text[:40] + "\n" + text[40:]),
               ("base64url", base64.urlsafe_b64encode(data).decode()), ("hex", data.hex()), ("unused_bits_set", loosened(text)),
               ("padding_inside", text[:8] + "==" + text[10:]), ("key_in_nonce", b64(key[:24] + data[24:])), ("without_nonce", b64(data[24:])),
               ("nonce_twice", b64(data[:24] + data)), ("tag_last", b64(data[:24] + data[40:] + data[24:40])), ("all_zeros", b64(bytes(80)))]
        out += [{"name": n, "push_key": wire, "encrypted_data": d, "decrypts": False} for n, d in bad]
        first = b64(secretbox(b"z", (bytes([TAG]) + key)[:32], self.bytes(24)))
        out.append({"name": "sealed_with_the_first_32_bytes", "push_key": wire, "encrypted_data": first, "decrypts": False})
        self.doc["encrypted_data"] = {"cases": out}

        host = self.word(9, "abcdefgh") + ".example.org"
        account = {"realm_url": f"https://{host}", "user_id": self.r.randint(1, 2**31)}
        base = {"realm_url": account["realm_url"], "realm_name": "", "user_id": account["user_id"], "type": "message",
                "message_id": 2**53 + 1, "time": 0, "sender_id": 2**40, "sender_full_name": "", "sender_avatar_url": "",
                "content": "", "recipient_type": "channel", "channel_id": 0, "channel_name": "", "topic": ""}
        rows = []

        def row(name, outcome, drop=(), **change):
            rows.append({"name": name, "json": {k: v for k, v in {**base, **change}.items() if k not in drop},
                         "account": account, "outcome": outcome})

        direct = ("channel_id", "channel_name", "topic", "recipient_type")
        row("empty_texts_and_numbers_beyond_a_double", "message")
        row("every_kind_of_character", "message", content="\u0000\u001f\"\\/\u2028\u2029\ud7ff\ue000\uffff\U0001f468\u200d\U0001f469 e\u0301\u202e",
            topic="\t\r\n", sender_full_name="\ufeff" * 3)
        row("port_443_is_https", "message", realm_url=f"https://{host}:443")
        row("scheme_and_host_in_capitals", "message", realm_url=f"HTTPS://{host.upper()}/")
        row("path_query_and_fragment", "message", realm_url=f"https://{host}/a/b?c#d")
        row("port_80", "reject", realm_url=f"https://{host}:80")
        row("host_with_a_tail", "reject", realm_url=f"https://{host}.example.net")
        row("host_as_a_prefix", "reject", realm_url=f"https://x{host}")
        row("user_of_a_double", "reject", user_id=account["user_id"] + 2**53)
        row("user_negative", "reject", user_id=-account["user_id"])
        for name in ("realm_url", "user_id", "message_id", "time", "content", "sender_id", "sender_full_name", "topic"):
            row(f"{name}_null", "malformed", **{name: None})
            row(f"{name}_list", "malformed", **{name: [base[name]]})
        row("number_as_text", "malformed", message_id="7")
        row("text_as_number", "malformed", content=7)
        row("bool_as_number", "malformed", sender_id=True)
        row("deep_extra_member", "message", extra=json.loads("[" * 20 + "]" * 20))
        row("type_in_capitals", "ignore", type="MESSAGE")
        row("type_with_blank", "ignore", type="message ")
        row("direct_to_nobody", "message", direct, recipient_user_ids=[])
        row("direct_to_a_thousand", "message", direct, recipient_user_ids=list(range(1000)))
        row("direct_with_null", "malformed", direct, recipient_user_ids=[1, None])
        row("remove_large_ids", "remove", type="remove", message_ids=[2**53 + 1, 2**62])
        row("remove_with_text", "malformed", type="remove", message_ids=[1, "2"])
        row("remove_object", "malformed", type="remove", message_ids={"1": 2})
        row("test_without_time", "malformed", ("time",), type="test")
        row("test_at_zero", "test", type="test", time=0)
        rows += [{"name": f"root_{n}", "json": v, "account": account, "outcome": "malformed"}
                 for n, v in enumerate(("message", 7, True, [], [base]))]
        self.doc["content"] = {"cases": rows}

        sizes, fixed = [], len(compact({"push_key_id": 4294967295, "encrypted_data": "", "aps": APS}))
        edge = (4096 - fixed) // 4 * 3 - 40
        for plain in (0, 1, 2, 3, edge - 3, edge - 1, edge, edge + 1, edge + 3, edge + 100):
            chars = len(b64(bytes(plain + 40)))
            sizes.append({"name": f"plain_{plain}", "plaintext_bytes": plain, "encrypted_data_chars": chars,
                          "apns_body_bytes": fixed + chars, "fits_4096": fixed + chars <= 4096})
        self.doc["sizes"] = {"rows": sizes}

    # ---- registrations ---------------------------------------------------------------------------------
    def registrations(self):
        cases = []

        def case(name, expect=OK, *, plain=None, token=None, kind="apns", app="org.example.app", time=None, required=True,
                 pair=1, form=None, drop=(), stores=None):
            token = self.hex(32) if token is None else token
            if plain is None:
                plain = {"token_kind": kind, "token": token, "timestamp": self.now if time is None else time}
                if app is not None:
                    plain["ios_app_id"] = app
            raw = plain if isinstance(plain, bytes) else compact(plain).encode()
            public = self.pairs[pair][0]
            fields = {"realm_uuid": self.realm, "token_id": token_id(token),
                      "encrypted_push_registration": b64(seal(raw, public, self.bytes(32))), "bouncer_public_key": b64(public)}
            fields.update(form or {})
            row = {"name": name, "form": {k: v for k, v in fields.items() if k not in drop}, "expect": expect, "required": required}
            if expect["http"] == 200:
                row["stores"] = stores or {"token_kind": kind, "token": token, "ios_app_id": app}
            cases.append(row)

        def text(name, expect, form, kind="fcm", **more):
            """A plaintext by hand; `%t` stands for the token, `%n` for now."""
            token = more.pop("token", None) or (self.fcm() if kind == "fcm" else self.hex(32))
            raw = form.replace("%t", token).replace("%n", str(self.now)).encode()
            case(name, expect, plain=raw, token=token, kind=kind, app=None if kind == "fcm" else "a", **more)

        # Times.
        for name, age in (("fresh", 0), ("one_second", 1), ("a_day_less_one", DAY - 1), ("exactly_a_day", DAY)):
            case("age_" + name, time=self.now - age)
        for name, age in (("a_day_and_one", DAY + 1), ("ten_years", 3650 * DAY), ("since_zero", self.now), ("before_zero", self.now + 1),
                          ("smallest_64_bits", self.now + 2**63)):
            case("age_" + name, EXPIRED, time=self.now - age)
        for name, ahead in (("one_second", 1), ("an_hour", 3600), ("a_day", DAY)):
            case("ahead_" + name, time=self.now + ahead)
        for name, time in (("a_day_and_one", self.now + DAY + 1), ("2_to_53", 2**53), ("largest_64_bits", 2**63 - 1), ("2_to_63", 2**63),
                           ("fifty_digits", 10**50)):
            case("ahead_" + name, time=time, required=False)
        case("time_below_64_bits", EXPIRED, time=-2**63 - 1, required=False)
        head = '{"token_kind":"fcm","token":"%t","timestamp":'
        for name, literal in (("with_point_zero", f"{self.now}.0"), ("with_exponent", f"{self.now}e0"), ("as_text", f'"{self.now}"')):
            text("time_" + name, OK, head + literal + "}", required=False)
        for literal in ("-0", "0.0", "true"):
            text(f"time_{literal}", EXPIRED, head + literal + "}", required=literal == "-0")
        for name, literal in (("half", f"{self.now}.5"), ("list", "[%n]"), ("null", "null"), ("empty", '""'), ("word", '"now"'), ("leading_zero", "0%n"),
                              ("plus", "+%n"), ("hex", "0x1"), ("bare_point", "%n."), ("bare_exponent", "%ne"), ("nan", "NaN")):
            text("time_" + name, BAD, head + literal + "}")
        # JSON.
        rest = '"token_kind":"fcm","token":"%t","timestamp":%n}'
        text("escaped_names_and_values", OK, '{"\\u0074oken_kind":"\\u0066cm","tok\\u0065n":"%t","timestamp":%n}')
        text("white_space", OK, ' \t\r\n{ "token_kind"\t:\n"fcm"\r,"token" : "%t" , "timestamp" : %n\n}\r\n\t ')
        text("doubles_the_last_counts", OK, '{"token_kind":"apns","token":"","timestamp":0,"ios_app_id":"a","ios_app_id":null,' + rest)
        text("doubles_the_last_is_wrong", BAD, '{"token_kind":"fcm","token":"%t","timestamp":%n,"token":""}')
        text("escaped_double", BAD, '{"token_kind":"fcm","token":"%t","timestamp":%n,"\\u0074oken":"x"}')
        text("extra_members_of_every_type", OK, '{"a":null,"b":[true,false,{"c":[]}],"d":-1.5e-7,"e":"\\ud83d\\ude00\\u0000\\/","":{},' + rest)
        text("extra_number_of_fifty_digits", OK, '{"n":' + "9" * 50 + ",%s" % rest)
        text("extra_members_a_hundred_deep", OK, '{"d":' + "[" * 100 + "]" * 100 + "," + rest)
        text("padding_of_a_kilobyte", OK, '{"padding":"' + " " * 1024 + '",' + rest)
        text("nothing_for_ios", OK, '{"ios_app_id":null,' + rest)
        for name, form in (("byte_order_mark", "\ufeff{" + rest), ("nul_behind", "{" + rest + "\u0000"), ("nul_before", "\u0000{" + rest),
                           ("two_texts", "{" + rest + "{}"), ("trailing_comma", "{" + rest[:-1] + ",}"), ("comment", "{/**/" + rest),
                           ("single_quotes", ("{" + rest).replace('"', "'")), ("bare_names", "{" + rest.replace('"token_kind"', "token_kind")),
                           ("unclosed", "{" + rest[:-1]), ("raw_line_break_in_text", '{"x":"a\nb",' + rest), ("raw_nul_in_text", '{"x":"\u0000",' + rest),
                           ("lone_high_half", '{"x":"\\ud83d",' + rest), ("lone_low_half", '{"x":"\\ude00",' + rest), ("halves_swapped", '{"x":"\\ude00\\ud83d",' + rest),
                           ("unknown_escape", '{"x":"\\x41",' + rest), ("cut_escape", '{"x":"\\u12",' + rest), ("no_comma", '{"x":1 ' + rest),
                           ("no_colon", '{"x" 1,' + rest), ("wrong_close", "{" + rest[:-1] + "]"), ("in_an_array", "[{" + rest + "]"), ("in_a_text", json.dumps("{" + rest)),
                           ("thousands_deep", '{"d":' + "[" * 3000 + "]" * 3000 + "," + rest)):
            text("json_" + name, BAD, form)
        for name, raw in (("utf16", compact({"token_kind": "fcm"}).encode("utf-16")), ("overlong", b'{"x":"\xc0\x80"}'), ("surrogate_bytes", b'{"x":"\xed\xa0\x80"}'),
                          ("above_unicode", b'{"x":"\xf4\x90\x80\x80"}'), ("cut_character", b'{"x":"\xf0\x9f\x94"}'), ("zeros", bytes(64)), ("one_brace", b"{")):
            case("bytes_" + name, BAD, plain=raw)
        # Tokens and apps.
        for name, token in (("two_digits", self.hex(1)), ("200_digits", self.hex(100)), ("4096_digits", self.hex(2048)), ("both_cases", "aAbB09fF")):
            case("token_" + name, token=token)
        for name, token in (("4098_digits", self.hex(2049)), ("full_width", "１２"), ("prefix_0x", "0x" + self.hex(4)), ("colon", "ab:cd"), ("nul", "ab\u0000d")):
            case("token_" + name, BAD, token=token)
        for name, token in (("blank_before", " " + self.hex(4)), ("line_break_behind", self.hex(4) + "\n")):
            case("token_" + name, token=token, required=False)  # the deployed hex parser skips white space
        for name, token in (("one_character", "é"), ("4096_of_four_bytes", "🔔" * 4096), ("quotes_and_controls", "\"\\\n\t\u0001"), ("blank", " ")):
            case("fcm_" + name, token=token, kind="fcm", app=None)
        case("fcm_4097_characters", BAD, token="é" * 4097, kind="fcm", app=None)
        for name, app in (("one_dot", "."), ("only_hyphens", "---"), ("mixed", "A.b-9"), ("155_characters", "a" * 155)):
            case("app_" + name, app=app)
        case("app_of_a_kilobyte", app="a" * 1024, required=False)
        for name, app in (("underscore", "a_b"), ("blank_behind", "a "), ("line_break_behind", "a\n"), ("nul", "a\u0000"), ("slash", "a/b"), ("list", ["a"]), ("number", 7)):
            case("app_" + name, BAD, app=app)
        for name, kind in (("capital", "Apns"), ("blank_behind", "apns "), ("number", 1), ("null", None), ("list", ["apns"])):
            case("kind_" + name, BAD, kind=kind)
        # Base64, keys, ids.
        public, plain = self.pairs[1][0], {"token_kind": "apns", "token": "ab", "timestamp": self.now, "ios_app_id": "a"}
        sealed = b64(seal(compact(plain).encode(), public, self.bytes(32)))
        while not loosened(sealed) or not {"+", "/"} <= set(sealed):
            plain["pad"] = " " * self.r.randint(0, 9)
            sealed = b64(seal(compact(plain).encode(), public, self.bytes(32)))
        stored = {"token_kind": "apns", "token": "ab", "ios_app_id": "a"}

        def box(name, text, expect=BAD, required=True):
            case(name, expect, token="ab", form={"encrypted_push_registration": text}, required=required, stores=stored)

        box("box_with_plus_and_slash", sealed, OK)
        for name, changed in (("line_breaks", "\n".join(sealed[n:n + 64] for n in range(0, len(sealed), 64))), ("blank_behind", sealed + " "),
                              ("unused_bits_set", loosened(sealed)), ("overpadded", sealed + "=")):
            box("box_" + name, changed, OK, False)  # the deployed decoder skips what it does not know
        for name, changed in (("unpadded", sealed.rstrip("=")), ("blanks_for_plus", sealed.replace("+", " ")), ("base64url", sealed.replace("+", "-").replace("/", "_")),
                              ("percent_encoded", sealed.replace("+", "%2B")), ("half", sealed[:len(sealed) // 8 * 4]), ("doubled", sealed.rstrip("=") + sealed),
                              ("one_letter", "A"), ("padding_alone", "===="), ("in_quotes", f'"{sealed}"'), ("key_for_box", b64(public)), ("unicode", "ż" * 64)):
            box("box_" + name, changed)
        key = b64(public)
        for name, changed in (("blank_behind", key + " "), ("line_break", key + "\n"), ("unused_bits_set", loosened(key)), ("overpadded", key + "="), ("case_swapped", key.swapcase()),
                              ("hex", public.hex()), ("private_key", b64(self.pairs[1][1])), ("nul", "\u0000"), ("four_kilobytes", "A" * 4096)):
            case("key_" + name, BAD_KEY, form={"bouncer_public_key": changed})
        case("key_retired", BAD_KEY, pair=0)
        case("key_of_the_other_pair", BAD, form={"bouncer_public_key": b64(self.pairs[2][0])})
        case("second_key", pair=2)
        for name, changed in (("blank_behind", token_id("ab") + " "), ("unused_bits_set", loosened(token_id("ab"))), ("unpadded", token_id("ab").rstrip("=")), ("overpadded", token_id("ab") + "="),
                              ("hex", base64.b64decode(token_id("ab")).hex()), ("little_endian", b64(base64.b64decode(token_id("ab"))[::-1])), ("last_bytes", b64(hashlib.sha256(b"ab").digest()[-8:])),
                              ("empty", ""), ("json_text", f'"{token_id("ab")}"')):
            case("id_" + name, BAD, token="ab", form={"token_id": changed})
        case("realm_second", form={"realm_uuid": self.second})
        case("realm_in_capitals", form={"realm_uuid": self.realm.upper()}, required=False)
        for name, changed in (("in_braces", "{%s}" % self.realm), ("urn", f"urn:uuid:{self.realm}"), ("without_hyphens", self.realm.replace("-", ""))):
            case("realm_" + name, form={"realm_uuid": changed}, required=False)
        for name, changed in (("empty", ""), ("one_digit_more", self.realm + "0"), ("one_digit_less", self.realm[:-1]), ("blank_inside", self.realm[:8] + " " + self.realm[9:]),
                              ("letters", "g" * 8 + self.realm[8:]), ("nul", self.realm + "\u0000"), ("null", "null")):
            case("realm_" + name, BAD, form={"realm_uuid": changed}, required=False)
        case("realm_nil", UNKNOWN, form={"realm_uuid": str(uuid.UUID(int=0))})
        case("ignored_parameters_sorted", {**OK, "ignored_parameters_unsupported": ["Z", "a", "zz", "ż"]}, form={"zz": "1", "a": "", "ż": "2", "Z": "3"})
        # Two faults: the earlier check answers.
        junk, gone = "AAAA", {"realm_uuid": self.nobody}
        case("order_realm_before_key", UNKNOWN, pair=0, form=gone)
        case("order_realm_before_box", UNKNOWN, form={**gone, "encrypted_push_registration": junk})
        case("order_realm_before_age", UNKNOWN, time=0, form=gone)
        case("order_realm_before_id", UNKNOWN, form={**gone, "token_id": "@"})
        case("order_foreign_realm_before_key", FOREIGN, form={"realm_uuid": self.other, "bouncer_public_key": "x"})
        case("order_foreign_realm_before_everything", FOREIGN, form={"realm_uuid": self.other, "bouncer_public_key": "", "encrypted_push_registration": "", "token_id": ""})
        case("order_key_before_box", BAD_KEY, form={"bouncer_public_key": "x", "encrypted_push_registration": junk})
        case("order_key_before_age", BAD_KEY, pair=0, time=0)
        case("order_key_before_id", BAD_KEY, pair=0, form={"token_id": "@"})
        case("order_fields_before_age", BAD, time=0, app="a b")
        case("order_token_before_age", BAD, time=0, token="xyz")
        case("order_id_before_age", BAD, time=0, form={"token_id": token_id("other")})
        for first in range(4):
            case(f"order_missing_{first}", missing(FORM[first]), drop=FORM[first:])
            case(f"order_missing_{first}_before_realm", missing(FORM[max(first, 1)]), form=gone, drop=FORM[max(first, 1):])
        self.doc["bouncer_register"] = {"cases": cases}

    # ---- notifications ---------------------------------------------------------------------------------
    def notifications(self):
        ios = {"token_kind": "apns", "token": self.hex(32).upper(), "ios_app_id": "org.example.app"}
        fork = {"token_kind": "apns", "token": self.hex(100), "ios_app_id": "A.b-9"}
        phone = {"token_kind": "fcm", "token": self.fcm(), "ios_app_id": None}
        elsewhere = dict(phone, realm=self.second)
        data = [b64(secretbox(self.bytes(n), self.push[0], self.bytes(24))) for n in (0, 1, 2, 300)]
        cases, status = [], {"can_push": True, "expected_end_timestamp": None}

        def apns(device, priority=10, kind="alert", data=data[0], key=7, **payload):
            return {"token_id": token_id(device["token"]), "http_headers": {"apns_priority": priority, "apns_push_type": kind},
                    "payload": {"push_key_id": key, "encrypted_data": data, **payload}}

        def fcm(device, priority="high", data=data[1], key=7, **payload):
            return {"token_id": token_id(device["token"]), "fcm_priority": priority, "payload": {"push_key_id": key, "encrypted_data": data, **payload}}

        def sent(device, item):
            payload = item["payload"]
            if device["token_kind"] == "apns":
                headers = item["http_headers"]
                return {"service": "apns", "path": "/3/device/" + device["token"],
                        "headers": {"apns-topic": device["ios_app_id"], "apns-priority": str(headers["apns_priority"]), "apns-push-type": headers["apns_push_type"]},
                        "body": {"push_key_id": payload["push_key_id"], "encrypted_data": payload["encrypted_data"], "aps": payload.get("aps", APS)}}
            return {"service": "fcm", "body": {"message": {"token": device["token"], "android": {"priority": item["fcm_priority"]},
                    "data": {"push_key_id": str(payload["push_key_id"]), "encrypted_data": payload["encrypted_data"]}}}}

        def case(name, devices, items, reach=None, *, counts=None, dead=(), expect=None, raw=None, realm=None, upstream=None, expired=(), required=True):
            """`reach`: (device, item) pairs that are sent; all of them count unless `counts` says otherwise."""
            reach = reach or []
            if counts is None:
                counts = [sum(d["token_kind"] == k for d, _ in reach) for k in ("apns", "fcm")]
            body = compact({"realm_uuid": self.realm if realm is None else realm, "push_requests": items}) if raw is None else raw
            ok = {"http": 200, "body": {"result": "success", "msg": "", "apple_successfully_sent_count": counts[0], "android_successfully_sent_count": counts[1],
                                        "delete_token_ids": list(dead), "realm_push_status": status}}
            row = {"name": name, "registered": devices, "request_body": body, "upstream": upstream or {}, "sends": [sent(d, i) for d, i in reach],
                   "expect": expect or ok, "required": required}
            if expired:
                row["after"] = {"expired": list(expired)}
            cases.append(row)

        def one(name, item, device=ios):
            case(name, [device], [item], [(device, item)])

        # The topic is the registered app, whatever the push type.
        for kind, priority in (("alert", 1), ("alert", 5), ("background", 1), ("voip", 10), ("complication", 10), ("fileprovider", 10), ("mdm", 10), ("liveactivity", 5)):
            one(f"{kind}_at_{priority}", apns(ios, priority, kind))
        one("topic_of_another_app", apns(fork), fork)
        for n, text in enumerate(data):
            one(f"data_{n}", apns(ios, data=text))
        one("key_id_0", fcm(phone, key=0), phone)
        one("key_id_0_at_apple", apns(ios, key=0))
        # Any object reaches Apple as it stands.
        for name, aps in (("empty", {}), ("numbers", {"badge": 0, "content-available": 1, "x": -1, "y": 2**53}), ("text_map", {"alert": {"title": "\"\\\u0000\u2028😀", "body": ""}, "e": {}}), ("unicode_name", {"ż": 1}),
                          ("sound_as_12x_sends", {**APS, "sound": "default"}), ("removal_as_12x_sends", {"mutable-content": 1}), ("fraction", {"a": 1.5}), ("whole_fraction", {"a": 1.0}), ("bool", {"a": True, "b": False}),
                          ("null_member", {"a": None}), ("list_member", {"a": [1, "b", None, {}, []]}), ("number_in_map", {"alert": {"a": 1}}), ("map_in_map", {"alert": {"a": {}}}), ("own_names", {"aps": {}, "push_key_id": "x"}),
                          ("nested_20", json.loads('{"a":' * 19 + "{}" + "}" * 19)), ("largest", {"a": "x" * (4096 - len(compact({"push_key_id": 7, "encrypted_data": data[0], "aps": {"a": ""}})))})):
            one("aps_" + name, apns(ios, aps=aps, data=data[0]))
        for name, aps in (("null", None), ("list", [1]), ("text", "x"), ("number", 1), ("flag", True)):
            case("aps_" + name, [ios], [apns(ios, aps=aps)], expect=BAD, required=False)
        case("aps_too_large", [ios], [apns(ios, aps={"a": "x" * 4096})], expect=BAD, required=False)
        one("aps_is_nothing_to_google", fcm(phone, aps=[1]), phone)
        both = {**apns(ios), "fcm_priority": "high"}
        one("apple_when_both_are_there", both)
        # JSON.
        good = compact({"realm_uuid": self.realm, "push_requests": [fcm(phone)]})
        item, reach = compact(fcm(phone)), [(phone, fcm(phone))]
        gone = {"token_kind": "fcm", "token": self.fcm(), "ios_app_id": None}
        tid = token_id(phone["token"])
        for name, raw in (
                ("white_space", good.replace(":", " :\t").replace(",", "\r\n, ")), ("white_space_around", "\n\t " + good + " \r\n"),
                ("escaped_names", good.replace('"realm_uuid"', '"\\u0072ealm_uuid"').replace('"payload"', '"\\u0070ayload"')),
                ("escaped_values", good.replace(f'"{tid}"', '"' + "".join(f"\\u{ord(c):04x}" for c in tid) + '"').replace("/", "\\/")),
                ("double_realm_the_last_counts", good.replace("{", '{"realm_uuid":"%s",' % self.nobody, 1)), ("double_items_the_last_counts", good.replace("{", '{"push_requests":[],', 1)),
                ("double_key_id_the_last_counts", good.replace('"push_key_id":', '"push_key_id":1,"push_key_id":')),
                ("extra_members", good[:-1] + ',"a":{"b":[null,true,-1.5e9,"\\ud83d\\ude00"]},"":0}'), ("extra_in_item", good.replace('"fcm_priority"', '"x":[[]],"fcm_priority"')),
                ("extra_in_payload", good.replace('"push_key_id"', '"zoom":{"a":1},"push_key_id"')), ("extra_a_hundred_deep", good[:-1] + ',"d":' + "[" * 100 + "]" * 100 + "}")):
            case("json_" + name, [phone], None, reach, raw=raw)
        for name, raw in (
                ("empty", ""), ("blank", " "), ("null", "null"), ("array", "[]"), ("text", '"x"'), ("number", "1"), ("byte_order_mark", "\ufeff" + good), ("nul_behind", good + "\u0000"),
                ("two_texts", good + good), ("trailing_comma", good[:-1] + ",}"), ("trailing_comma_in_list", good[:-2] + ",]}"), ("single_quotes", good.replace('"', "'")), ("comment", "/**/" + good),
                ("lone_half", good[:-1] + ',"x":"\\ud83d"}'), ("raw_control", good[:-1] + ',"x":"\u0001"}'), ("cut", good[:-1]), ("form", "realm_uuid=" + self.realm), ("no_items", compact({"realm_uuid": self.realm})),
                ("items_null", compact({"realm_uuid": self.realm, "push_requests": None})), ("items_object", compact({"realm_uuid": self.realm, "push_requests": fcm(phone)})),
                ("item_null", good.replace(item, "null")), ("item_list", good.replace(item, "[]")), ("item_text", good.replace(item, '"x"')), ("item_empty", good.replace(item, "{}")),
                ("realm_number", good.replace(f'"{self.realm}"', "7")), ("realm_null", good.replace(f'"{self.realm}"', "null")), ("thousands_deep", good[:-1] + ',"d":' + "[" * 3000 + "]" * 3000 + "}")):
            case("json_" + name, [phone], None, raw=raw, expect=BAD)
        for name, literal in (("point_zero", "7.0"), ("exponent", "7e0"), ("text", '"7"'), ("true", "true"), ("null", "null"), ("list", "[7]"), ("leading_zero", "07"), ("plus", "+7")):
            case("key_id_" + name, [phone], None, raw=good.replace('"push_key_id":7', '"push_key_id":' + literal), expect=BAD)
        for name, literal in (("negative", "-1"), ("2_to_32", str(2**32)), ("fifty_digits", "9" * 50)):
            case("key_id_" + name, [phone], None, raw=good.replace('"push_key_id":7', '"push_key_id":' + literal), expect=BAD, required=False)
        for name, change in (("priority_point_zero", {"apns_priority": 10.0, "apns_push_type": "alert"}), ("priority_0", {"apns_priority": 0, "apns_push_type": "alert"}), ("priority_true", {"apns_priority": True, "apns_push_type": "alert"}),
                             ("type_capital", {"apns_priority": 10, "apns_push_type": "Alert"}), ("type_location", {"apns_priority": 10, "apns_push_type": "location"}), ("type_missing", {"apns_priority": 10}), ("priority_missing", {"apns_push_type": "alert"}),
                             ("type_null", {"apns_priority": 10, "apns_push_type": None}), ("empty", {}), ("list", [])):
            case("headers_" + name, [ios], [{**apns(ios), "http_headers": change}], expect=BAD, required=name not in ("priority_point_zero", "priority_true"))
        for value in ("HIGH", "High", "high ", "", 1, None, ["high"]):
            case(f"fcm_priority_{value}", [phone], [fcm(phone, value)], expect=BAD)
        for value in (None, 7, ["QUJD"], {"a": "QUJD"}):
            case(f"data_{compact(value)}", [phone], [fcm(phone, data=value)], expect=BAD)
        for name, value in (("empty", ""), ("blank", "QU JD"), ("unpadded", "QUI"), ("padding_inside", "QU=D"), ("unicode", "żżżż")):
            case("data_" + name, [phone], [fcm(phone, data=value)], expect=BAD, required=False)
        for name, value in (("null", None), ("number", 7), ("unpadded", tid.rstrip("=")), ("base64url", "-_-_-_-_-_8="), ("blank", tid + " ")):
            case("id_" + name, [phone], [{**fcm(phone), "token_id": value}], expect=BAD)
        for name, value in (("unused_bits_set", loosened(tid)), ("seven_bytes", b64(bytes(7))), ("nine_bytes", b64(bytes(9))), ("empty", "")):
            case("id_" + name, [phone], [{**fcm(phone), "token_id": value}], expect=BAD, required=False)
        case("last_of_many_is_wrong", [phone, ios], [fcm(phone)] * 30 + [apns(ios, 10, "zzz")], expect=BAD)
        # Devices and realms.
        case("one_of_each_state", [phone, dict(ios, expired=True)], [fcm(phone), apns(ios), fcm(gone)], [(phone, fcm(phone))], dead=[token_id(ios["token"]), token_id(gone["token"])])
        case("unknown_named_twice", [phone], [fcm(gone), fcm(gone)], dead=[token_id(gone["token"])])
        case("thirty_for_one", [phone], [fcm(phone, key=n) for n in range(30)], [(phone, fcm(phone, key=n)) for n in range(30)])
        case("the_same_item_twice", [phone], [fcm(phone)] * 2, reach * 2)
        case("second_realm", [elsewhere], [fcm(phone)], [(phone, fcm(phone))], realm=self.second)
        case("device_of_the_second_realm", [elsewhere], [fcm(phone)], dead=[tid])
        case("device_of_both_realms", [phone, elsewhere], [fcm(phone)], reach)
        case("other_case_of_a_token", [ios], [apns(dict(ios, token=ios["token"].lower()))], dead=[token_id(ios["token"].lower())])
        case("realm_in_capitals", [phone], [fcm(phone)], reach, realm=self.realm.upper(), required=False)
        for name, value in (("not_one", "x"), ("empty", ""), ("in_braces", "{%s}" % self.realm)):
            case("realm_" + name, [phone], [fcm(phone)], realm=value, expect=BAD, required=False)
        case("order_shape_before_unknown_realm", [phone], [fcm(phone, "low")], realm=self.nobody, expect=BAD)
        case("order_shape_before_foreign_realm", [phone], [{}], realm=self.other, expect=BAD)
        case("order_realm_before_kind", [ios], [fcm(ios)], realm=self.nobody, expect=UNKNOWN)
        case("order_foreign_realm_with_nothing", [], [], realm=self.other, expect=FOREIGN)
        case("kind_mismatch_apple_item", [phone], [apns(phone)], expect=BAD, required=False)
        case("kind_mismatch_beside_a_good_one", [phone, ios], [apns(ios), apns(phone)], expect=BAD, required=False)
        case("kind_mismatch_of_nobody", [phone], [apns(gone)], dead=[token_id(gone["token"])])
        # What the services say.
        apple, google = token_id(ios["token"]), token_id(phone["token"])

        def answered(name, device, answer, is_dead=False):
            item = apns(device) if device is ios else fcm(device)
            ids = [token_id(device["token"])] if is_dead else []
            case(name, [device], [item], [(device, item)], counts=[0, 0], dead=ids, expired=ids, upstream={device["token"]: answer})

        answered("410_at_this_moment", ios, {"status": 410, "reason": "Unregistered", "timestamp": self.now * 1000}, True)
        answered("410_before_it_was_registered", ios, {"status": 410, "reason": "Unregistered", "timestamp": self.now * 1000 - 1})
        for reason in ("BadCollapseId", "BadExpirationDate", "BadMessageId", "BadPriority", "BadTopic", "DuplicateHeaders", "IdleTimeout", "InvalidPushType", "MissingTopic", "PayloadEmpty", "SomethingNew", ""):
            answered("apns_400_" + (reason or "without_reason"), ios, {"status": 400, "reason": reason})
        for reason in ("Forbidden", "InvalidProviderToken", "MissingProviderToken", "BadEnvironmentKeyInToken", "BadEnvironmentKeyIdInToken", "UnrelatedKeyIdInToken", "SomethingNew"):
            answered("apns_403_" + reason, ios, {"status": 403, "reason": reason})
        for code, reason in ((404, "BadPath"), (405, "MethodNotAllowed"), (429, "TooManyProviderTokenUpdates"), (500, ""), (502, ""), (503, "Shutdown")):
            answered(f"apns_{code}_{reason}", ios, {"status": code, "reason": reason})
        for code, name in ((400, "SomethingNew"), (401, "THIRD_PARTY_AUTH_ERROR"), (403, "UNSPECIFIED_ERROR"), (404, "UNSPECIFIED_ERROR"), (429, "SomethingNew"), (502, "SomethingNew")):
            answered(f"fcm_{code}_{name}", phone, {"status": code, "errorCode": name})
        for code in (400, 401, 403, 404, 429, 500, 503):
            answered(f"fcm_{code}_without_code", phone, {"status": code})
        case("one_dead_one_throttled_one_well", [ios, phone, fork], [apns(ios), fcm(phone), apns(fork)], [(ios, apns(ios)), (phone, fcm(phone)), (fork, apns(fork))], counts=[1, 0],
             dead=[apple], expired=[apple], upstream={ios["token"]: {"status": 400, "reason": "BadDeviceToken"}, phone["token"]: {"status": 429, "errorCode": "QUOTA_EXCEEDED"}})
        case("dead_and_named_twice", [phone], [fcm(phone), fcm(phone, key=8)], [(phone, fcm(phone)), (phone, fcm(phone, key=8))], counts=[0, 0], dead=[google], expired=[google],
             upstream={phone["token"]: {"status": 404, "errorCode": "UNREGISTERED"}})
        self.doc["bouncer_notify"] = {"cases": cases}

    # ---- credentials and sign-up -----------------------------------------------------------------------
    def credentials(self):
        (org, key, _, _), (dead, dead_key, _, _), (other, other_key, _, _) = self.servers

        def basic(text, scheme="Basic "):
            return scheme + b64(text if isinstance(text, bytes) else text.encode())

        rows = []

        def case(name, header, expect=REFUSED, required=True):
            rows.append({"name": name, "authorization": header, "expect": expect, "required": required})

        good = basic(f"{org}:{key}")
        for name, header in (("usual", good), ("scheme_small", good.replace("Basic", "basic")), ("scheme_large", good.replace("Basic", "BASIC")), ("two_blanks", good.replace(" ", "  ")), ("tab", good.replace(" ", "\t")),
                             ("of_another_server", basic(f"{other}:{other_key}"))):
            case(name, header, {"http": 200})
        for name, header in (("empty", ""), ("scheme_alone", "Basic"), ("scheme_and_blank", "Basic "), ("three_words", good + " x"), ("base64_alone", good.split()[1]), ("bearer_alone", "Bearer"), ("nothing_inside", "Basic ===="),
                             ("not_base64", "Basic @@@@"), ("no_colon", basic(org + key)), ("only_a_colon", basic(":")), ("no_key", basic(org + ":")), ("no_id", basic(":" + key)), ("two_colons", basic(f"{org}:{key}:")),
                             ("colon_in_front", basic(f":{org}:{key}")), ("key_longer", basic(f"{org}:{key}x")), ("key_shorter", basic(f"{org}:{key[:-1]}")), ("key_other_case", basic(f"{org}:{key.swapcase()}")), ("key_blank_behind", basic(f"{org}:{key} ")),
                             ("key_nul_behind", basic(f"{org}:{key}\u0000")), ("swapped", basic(f"{key}:{org}")), ("crossed", basic(f"{org}:{other_key}")), ("latin_1", basic(b"\xff\xfe:" + key.encode())), ("at_sign_in_the_key", basic(f"{org}:a@b")),
                             ("deactivated", basic(f"{dead}:{dead_key}")), ("deactivated_wrong_key", basic(f"{dead}:{key}")), ("nil_id", basic(f"{uuid.UUID(int=0)}:{key}")), ("id_one_digit_more", basic(f"{org}0:{key}"))):
            case(name, header)
        for name, header in (("id_in_capitals", basic(f"{org.upper()}:{key}")), ("id_without_hyphens", basic(f"{org.replace('-', '')}:{key}")), ("id_in_braces", basic("{%s}:%s" % (org, key))), ("unpadded", basic(f"{org}:{key}").rstrip("="))):
            case(name, header, required=False)
        case("at_sign_in_the_id", basic(f"a@b:{key}"), BAD)
        case("at_sign_before_the_key_is_looked_at", basic(f"{org}@:{key}"), BAD)
        case("other_scheme", "Digest x", {"http": 400, "code": "BAD_REQUEST"}, False)
        self.doc["bouncer_auth"] = {"cases": rows}

        steps, fresh, fresh_key, later_key = [], self.uuid(), self.word(64), self.word(64)

        def step(name, expect, drop=(), required=True, **change):
            form = {"zulip_org_id": fresh, "zulip_org_key": fresh_key, "hostname": "odd.example.org", "contact_email": "admin@example.org", **change}
            row = {"name": name, "form": {k: v for k, v in form.items() if k not in drop}, "expect": expect}
            steps.append(row if required else {**row, "required": False})

        def new(name, created=True, required=True, **change):
            step(name, {"http": 200, "created": created}, required=required, **{"zulip_org_id": self.uuid(), "hostname": f"{self.word(8, 'abcdef')}.example.org", **change})

        # A new key is for a server that is known: told "created", deployed servers throw theirs away.
        step("created_with_a_new_key", {"http": 200, "created": True}, new_org_key=later_key)
        step("the_new_key_did_not_count", NOT_YOURS, zulip_org_key=later_key)
        step("the_first_key_does", {"http": 200, "created": False})
        step("rotated", {"http": 200, "created": False}, new_org_key=later_key)
        step("the_old_key_is_dead", NOT_YOURS)
        step("wrong_key_rotates_nothing", NOT_YOURS, new_org_key=fresh_key)
        step("host_changed", {"http": 200, "created": False}, zulip_org_key=later_key, hostname="moved.example.org")
        new("the_old_host_is_free", hostname="odd.example.org")
        step("host_taken_by_another", {"http": 400}, zulip_org_id=self.uuid(), hostname="moved.example.org")
        step("deactivated", {"http": 401, "code": "REALM_DEACTIVATED"}, zulip_org_id=dead, zulip_org_key=dead_key)
        step("deactivated_wrong_key", NOT_YOURS, zulip_org_id=dead)
        step("of_the_world", {"http": 200, "created": False}, zulip_org_id=other, zulip_org_key=other_key, hostname="third.example.org")
        step("wrong_key_names_the_server", {**NOT_YOURS, "role": fresh})
        label = "a" * 61
        long = ".".join([label, label, "ab", "c"])
        assert len(long) == 128
        for name, host in (("port", "p.example.org:1"), ("last_port", "q.example.org:65535"), ("digits", "1.2.3.4"), ("punycode", "xn--bcher-kva.example"), ("a_label_of_63", "b" * 63 + ".example.org")):
            new("host_" + name, hostname=host)
        new("host_of_128", hostname=long, required=False)
        new("host_unicode", hostname="bücher.example.org", required=False)
        for name, host in (("empty", ""), ("of_129", "a" + long), ("blank_before", " a.example.org"), ("line_break", "a.example.org\n"), ("scheme", "https://a.example.org"), ("path", "a.example.org/"), ("query", "a.example.org?x"), ("fragment", "a.example.org#x"),
                           ("user", "u@a.example.org"), ("port_empty_text", "a.example.org:x"), ("port_of_six", "a.example.org:123456"), ("port_negative", "a.example.org:-1"), ("dots", "a..example.org"), ("dot_before", ".example.org"), ("hyphen_before", "-a.example.org"), ("hyphen_behind", "a-.example.org"),
                           ("underscore", "a_b.example.org"), ("label_of_64", "c" * 64 + ".example.org"), ("nul", "a\u0000.example.org"), ("percent", "a%20.example.org"), ("backslash", "a\\b.example.org"), ("ipv6_open", "[::1")):
            step("host_" + name, {"http": 400, "code": "BAD_REQUEST"}, zulip_org_id=self.uuid(), hostname=host)
        for name, mail in (("plus", "a+b@example.org"), ("dots", "a.b.c@mail.example.org"), ("signs", "!#$%&'*+-/=?^_`{|}~@example.org"), ("example_net", "a@example.net")):
            new("mail_" + name, contact_email=mail)
        for name, mail in (("empty", ""), ("no_at", "a.example.org"), ("no_domain", "a@"), ("no_local", "@example.org"), ("two_at", "a@b@example.org"), ("blank", "a b@example.org"), ("dots_together", "a..b@example.org"), ("dot_before", ".a@example.org"), ("dot_behind", "a.@example.org"),
                           ("line_break", "a@example.org\n"), ("no_top_level", "a@host"), ("hyphen", "a@-example.org"), ("example_com", "a@example.com"), ("example_com_large", "a@EXAMPLE.com"), ("name_before", "A <a@example.org>"), ("comma", "a@example.org,b@example.org")):
            step("mail_" + name, {"http": 400, "code": "BAD_REQUEST"}, zulip_org_id=self.uuid(), hostname=f"m{len(steps)}.example.org", contact_email=mail)
        version_1, variant = str(uuid.UUID(self.uuid()))[:14] + "1" + self.uuid()[15:], self.uuid()
        variant = variant[:19] + "c" + variant[20:]
        for name, text in (("version_1", version_1), ("wrong_variant", variant), ("capitals", self.uuid().upper()), ("all_f", "f" * 8 + "-ffff-ffff-ffff-" + "f" * 12), ("hyphens_moved", self.uuid().replace("-", "")[:4] + "-" * 4 + self.uuid().replace("-", "")[:28]),
                           ("36_letters", "z" * 36), ("blank_inside", self.uuid()[:35] + " ")):
            step("uuid_" + name, {"http": 400, "code": "BAD_REQUEST"}, zulip_org_id=text, hostname=f"u{len(steps)}.example.org")
        for name, change in (("id_of_35", {"zulip_org_id": self.uuid()[:-1]}), ("id_of_37", {"zulip_org_id": self.uuid() + "0"}), ("id_empty", {"zulip_org_id": ""}), ("key_of_63", {"zulip_org_key": "k" * 63}), ("key_of_65", {"zulip_org_key": "k" * 65}),
                             ("key_empty", {"zulip_org_key": ""}), ("new_key_of_63", {"new_org_key": "k" * 63}), ("new_key_empty", {"new_org_key": ""})):
            step(name, {"http": 400, "code": "BAD_REQUEST"}, **{"zulip_org_id": self.uuid(), "hostname": f"l{len(steps)}.example.org", **change})
        # Two faults. Parameters are read one after the other, each for being there and for its length; forms follow; then the key.
        wrong = {"http": 400, "code": "BAD_REQUEST"}
        step("order_id_length_before_missing_key", wrong, ("zulip_org_key",), zulip_org_id="short")
        step("order_key_length_before_missing_host", wrong, ("hostname",), zulip_org_key="short")
        step("order_missing_id_before_key_length", missing("zulip_org_id"), ("zulip_org_id",), zulip_org_key="short")
        step("order_missing_host_before_missing_mail", missing("hostname"), ("hostname", "contact_email"))
        step("order_missing_mail_before_new_key_length", missing("contact_email"), ("contact_email",), new_org_key="short")
        step("order_host_before_key", wrong, hostname="a b", zulip_org_key="x" * 64)
        step("order_mail_before_key", wrong, contact_email="x", zulip_org_key="x" * 64)
        step("order_uuid_before_taken_host", wrong, zulip_org_id="z" * 36, hostname="moved.example.org")
        step("order_key_before_taken_host", NOT_YOURS, zulip_org_key="x" * 64, hostname="third.example.org")
        self.doc["signup"] = {"steps": steps}

    def build(self):
        self.world(), self.values(), self.boxes(), self.contents(), self.registrations(), self.notifications(), self.credentials()
        for section in self.doc.values():
            rows = section.get("cases", section.get("steps", [])) if isinstance(section, dict) else []
            names = [row["name"] for row in rows if "name" in row]
            assert len(names) == len(set(names)), sorted(n for n in names if names.count(n) > 1)
        return self.doc


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", required=True)
    parser.add_argument("--set", default="odd")
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    with open(arguments.out, "w", encoding="utf-8") as file:
        json.dump(Odd(arguments.seed, arguments.set).build(), file, ensure_ascii=True, indent=0, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
