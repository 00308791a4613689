"""What a push service would object to in a request, written down and counted."""
import base64
import collections
import json
import re
import uuid

from hpack import NeverIndexedHeaderTuple

PUSH_TYPES = {"alert", "background", "voip", "complication", "fileprovider", "mdm", "liveactivity", "location",
              "pushtotalk", "widgets", "controls"}
BODY_LIMIT = 4096
BODY_LIMIT_VOIP = 5120
PSEUDO = {":method", ":scheme", ":authority", ":path"}
# Exactly these fields, and these more where a message has them: whatever else is sent tells of who sends it.
FIELDS = {"apns": (PSEUDO | {"authorization", "apns-id", "apns-topic", "apns-push-type", "apns-priority"},
                   {"apns-expiration", "apns-collapse-id"}),
          "fcm": (PSEUDO | {"authorization", "content-type"}, set())}
# A token stands in the path, and each of these is a secret: "never indexed" forbids every hop to remember it.
HIDDEN = {"apns": {"authorization", ":path", "apns-collapse-id"}, "fcm": {"authorization", ":path"}}


class Report:
    """What has been seen over all connections."""

    def __init__(self, service):
        self.service = service
        self.authority = None
        self.counts = collections.Counter()
        self.least_window = None
        self.ids = collections.Counter()
        self.faults = collections.Counter()

    def fault(self, text):
        self.faults[text] += 1

    def judge_head(self, headers):
        """Checks the fields of a request; the answer is a mapping of them."""
        fields, hidden, regular = {}, set(), False
        for header in headers:
            name, value = header[0].decode(), header[1].decode("latin-1")
            if name in fields:
                self.fault(f"{name} twice")
            fields[name] = value
            if isinstance(header, NeverIndexedHeaderTuple):
                hidden.add(name)
            if name.startswith(":") and regular:
                self.fault("pseudo header after a regular one")
            regular = regular or not name.startswith(":")
            if name != name.lower():
                self.fault("a field name with capitals")
        required, allowed = FIELDS[self.service]
        for name in required - fields.keys():
            self.fault(f"{name} is missing")
        for name in fields.keys() - required - allowed:
            self.fault(f"{name} is not expected")
        for name in HIDDEN[self.service] & fields.keys() - hidden:
            self.fault(f"{name} may be indexed")
        for name, value in ((":method", "POST"), (":scheme", "https"), (":authority", self.authority)):
            if fields.get(name) != value:
                self.fault(f"{name} is not {value}")
        if self.service == "apns":
            self.judge_apns_head(fields)
        else:
            if not re.fullmatch(r"/v1/projects/[^/]+/messages:send", fields.get(":path", "")):
                self.fault(":path is not /v1/projects/P/messages:send")
            if not re.fullmatch(r"Bearer \S+", fields.get("authorization", "")):
                self.fault("authorization is no bearer")
        return fields

    def judge_apns_head(self, fields):
        if not re.fullmatch(r"/3/device/([0-9a-fA-F]{2})+", fields.get(":path", "")):
            self.fault(":path is not /3/device/HEX")
        name = fields.get("apns-id", "")
        try:
            if str(uuid.UUID(name)) != name:
                self.fault("apns-id is not in canonical form")
        except ValueError:
            self.fault("apns-id is no UUID")
        push_type = fields.get("apns-push-type")
        if push_type not in PUSH_TYPES:
            self.fault("apns-push-type is unknown")
        if fields.get("apns-priority") not in {"10", "5", "1"}:
            self.fault("apns-priority is not 10, 5 or 1")
        if push_type == "background" and fields.get("apns-priority") == "10":
            self.fault("background push with priority 10")
        self.judge_token(fields.get("authorization", ""))

    def judge_token(self, value):
        parts = value.removeprefix("bearer ").split(".")
        try:
            head, claims = (json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in parts[:2])
        except ValueError:
            self.fault("authorization is no JWT")
            return
        if len(parts) != 3 or head.get("alg") != "ES256" or "kid" not in head:
            self.fault("JWT lacks a signature, alg ES256 or kid")
        if "iss" not in claims or not isinstance(claims.get("iat"), int):
            self.fault("JWT claims lack iss or a whole iat")

    def judge_body(self, fields, body):
        try:
            message = json.loads(body)
        except ValueError:
            self.fault("body is not JSON")
            return
        if self.service == "apns":
            limit = BODY_LIMIT_VOIP if fields.get("apns-push-type") == "voip" else BODY_LIMIT
            if len(body) > limit:
                self.fault("body is too long")
            if not isinstance(message, dict) or not isinstance(message.get("aps"), dict):
                self.fault("body has no aps")
            return
        inner = message.get("message") if isinstance(message, dict) else None
        if not isinstance(inner, dict) or message.keys() != {"message"}:
            self.fault("body is not {message}")
            return
        if len({"token", "fid"} & inner.keys()) != 1:
            self.fault("message has not exactly one address")
        if inner.keys() - {"token", "fid", "android", "data"}:
            self.fault("message has members beyond address, android, data")
        if any(not isinstance(value, str) for value in inner.get("data", {}).values()):
            self.fault("a data value is no string")
        if inner.get("android", {}).get("priority") not in {"high", "normal"}:
            self.fault("android.priority is neither high nor normal")

    def count(self, fields, body):
        """Counts a request that is answered by its own name: `apns-id`, or the address at FCM."""
        self.counts["requests"] += 1
        if self.service == "apns":
            self.ids[fields.get("apns-id", "")] += 1
            return
        try:
            inner = json.loads(body)["message"]
            self.ids[inner.get("token") or inner.get("fid")] += 1
        except (ValueError, KeyError, TypeError, AttributeError):
            self.ids[""] += 1

    def judge_table(self, entries):
        """No secret may stand in the compression state that both ends keep (RFC 7541 §7.1.3).

        One `apns-id` may: it plants the field's name.
        """
        names = collections.Counter(bytes(name) for name, _ in entries)
        for name in HIDDEN[self.service]:
            if names[name.encode()]:
                self.fault(f"{name} stands in the header table")
        if names[b"apns-id"] > 1:
            self.fault("apns-ids fill the header table")

    def text(self):
        return json.dumps({
            **{name: self.counts[name] for name in
               ("requests", "connections", "goaways", "most_streams", "early", "dropped", "pings", "pongs",
                "limits_changed")},
            "distinct": len(self.ids), "doubled": sum(self.ids.values()) - len(self.ids),
            "least_window": self.least_window, "faults": dict(self.faults)})
