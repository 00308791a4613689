"""A row in which foreign code is a hostile second server at our relay: it has overheard what the first server's phones
and calls have shown to others, and what it sends is malformed. Written from the protocol's description.
"""
import concurrent.futures
import gzip
import json
import secrets
import time
import uuid

import requests

from tools import expect, need_modules, relay
from .conversation import message
from .zulip_clients import CODE, EXPIRED
from .zulip_forms import DAY_SECONDS, AccountPhone, FormsServer
from .zulip_hostile import EDGES, NO_INTEGERS, alike, raw
from .zulip_peer import PREFIX, Door, Phone, Services, answered, stranger_key


class Pair:
    """Two servers at one relay; the second has what the first's phones and calls have shown to others."""

    def __init__(self, run):
        self.calls = 0
        self.door = Door(run["urls"]["public"])
        self.services = Services(run["urls"]["sandbox-control"])
        key = run["public_keys"]["zulip-main"][0]
        self.first, self.second = (FormsServer(self.door, key, f"s-{secrets.token_hex(4)}.example.org") for _ in "ab")
        self.phone, self.keyed, self.token = AccountPhone("apns", 5, "zap"), AccountPhone("fcm", 6, "v11"), Phone(
            "fcm", 7)
        for server in (self.first, self.second):
            self.step(server.sign_up(), 200, "sign-up")
            self.step(server.analytics(), 200, "analytics")
        self.blobs = {phone: phone.blob(key) for phone in (self.phone, self.keyed)}
        self.blobs[self.token] = self.token.register(key)
        for phone in (self.phone, self.keyed):
            phone.device_id = self.step(self.first.join(phone, self.blobs[phone]), 200, "register")["device_id"]
        self.step(self.first.register(self.token, self.blobs[self.token]), 200, "register")

    def step(self, answer, status, what, code=None):
        self.calls += 1
        return answered(answer, status, what, code)

    def items(self, server, ids):
        content = message(1, secrets.token_hex(4))
        return [{**server.account_item(phone, content), "device_id": ids[phone]} for phone in ids]

    def first_is_whole(self, what):
        """The first's pushes arrive at all of its phones, and its ids are what they were."""
        for phone in (self.phone, self.keyed):
            told = self.step(self.first.join(phone), 200, what)
            expect(told["device_id"], phone.device_id, f"{what}: the first's id")
        for phone, items in ((self.phone, self.items(self.first, {self.phone: self.phone.device_id})),
                             (self.keyed, self.items(self.first, {self.keyed: self.keyed.device_id})),
                             (self.token, [self.first.item(self.token, message(1, secrets.token_hex(4)))])):
            told = self.step(self.first.notify(items), 200, what)
            expect((told["apple_successfully_sent_count"] + told["android_successfully_sent_count"],
                    told.get("delete_device_ids", []) + told.get("delete_token_ids", [])), (1, []), what)
            [found] = self.services.arrived("production" if phone.kind == "apns" else "fcm", 1)
            expect(found["token"].lower(), phone.token.lower(), f"{what}: the token")
        self.services.nothing_more(what)


def server_row(pair):
    guesses(pair)
    pair.first_is_whole("guesses")
    others_realm(pair)
    pair.first_is_whole("another's realm")
    replays(pair)
    numbers(pair)
    faults(pair)
    bodies(pair)
    at_once(pair)
    pair.first_is_whole("malformed calls")
    leaves(pair)


def guesses(pair):
    """Ids that the first's answers named, and its tokens' ids: to the second they are those of nobody."""
    for phone in (pair.phone, pair.keyed):
        unknown = phone.device_id ^ 1
        unknown += (len(str(unknown)) != len(str(phone.device_id))) * 2
        alike(*(pair.second.notify(pair.items(pair.second, {phone: each})) for each in (phone.device_id, unknown)),
              (phone.device_id, unknown), "the first's id beside an unknown one")
    item = pair.second.item(pair.token, message(1, "x"))
    nobody = Phone("fcm", 7).token_id
    alike(*(pair.second.notify([{**item, "token_id": each}]) for each in (pair.token.token_id, nobody)),
          (pair.token.token_id, nobody), "the first's token id beside an unknown one")
    ids = [pair.phone.device_id, pair.keyed.device_id]
    told = pair.step(pair.second.notify(pair.items(pair.second, {pair.phone: ids[0]}) * 999), 200, "one id 999 times")
    expect(told["delete_device_ids"], ids[:1], "one id 999 times")


def others_realm(pair):
    """Of the first's realm, host name and id the second gets nothing."""
    first, second = pair.first, pair.second
    wrong = "REMOTE_REALM_SERVER_MISMATCH_ERROR"
    pair.step(second.join(pair.phone, realm_uuid=first.realm), 403, "the first's realm", wrong)
    pair.step(second.register(pair.token, realm_uuid=first.realm), 403, "the first's realm", wrong)
    pair.step(second.notify(pair.items(second, {pair.phone: pair.phone.device_id}), realm=first.realm), 403,
              "the first's realm", wrong)
    pair.step(second.stale(realm_uuid=first.realm), 403, "the first's list", wrong)
    taken, second.realm = second.realm, first.realm
    pair.step(second.analytics(), 400, "an upload of the first's realm")
    second.realm = taken
    pair.step(second.sign_up(hostname=first.host), 400, "the first's host name")
    pair.step(second.sign_up(zulip_org_id=first.id), 400, "the first's id", "INVALID_ZULIP_SERVER")
    pair.step(second.sign_up(zulip_org_id=first.id, new_org_key="x" * 64), 400, "the first's id",
              "INVALID_ZULIP_SERVER")
    pair.step(pair.door.ask("POST", "server/deactivate", auth=(first.id, second.key), body=b"{}"), 401,
              "the end of the first", "UNAUTHORIZED")


def replays(pair):
    """A blob that was overheard makes a row of the second's own, whose life and death are not the first's."""
    copies = {}
    for phone in (pair.phone, pair.keyed):
        for _ in range(2):
            copies[phone] = pair.step(pair.second.join(phone, pair.blobs[phone]), 200, "a replay")["device_id"]
        expect(copies[phone] == phone.device_id, False, "the second's id is the first's")
    pair.step(pair.second.register(pair.token, pair.blobs[pair.token]), 200, "a replay")
    pair.first_is_whole("replays")
    # Dead while the second writes; the first has not written meanwhile, and its rows are not dead.
    for name, phone, state in (("production", pair.phone, "expired"), ("fcm", pair.keyed, "removed")):
        pair.services.set_device(name, phone, state)
        told = pair.step(pair.second.notify(pair.items(pair.second, {phone: copies[phone]})), 200, "a dead token")
        expect(told["delete_device_ids"], [copies[phone]], "a dead token")
        pair.services.set_device(name, phone, "live")
    pair.services.set_device("fcm", pair.token, "removed")
    told = pair.step(pair.second.notify([pair.second.item(pair.token, message(1, "x"))]), 200, "a dead token")
    expect(told["delete_token_ids"], [pair.token.token_id], "a dead token")
    pair.services.set_device("fcm", pair.token, "live")
    pair.first_is_whole("deaths at the second")


def numbers(pair):
    """Numbers as JSON has them: read to the last bit, and refused where they are none of 64 bits."""
    [item] = pair.items(pair.second, {pair.phone: 0})

    def notify(*texts, **changes):
        items = ",".join(json.dumps({**item, "device_id": "@", **changes}).replace('"@"', text) for text in texts)
        body = f'{{"realm_uuid":"{pair.second.realm}","push_requests":[{items}]}}'
        return pair.door.ask("POST", "push/e2ee/notify", auth=pair.second.auth, body=body.encode())

    told = pair.step(notify(*map(str, EDGES), "0", "-0"), 200, "numbers")
    expect(sorted(told["delete_device_ids"]), sorted([*EDGES, 0]), "numbers")
    odd = [text for text in NO_INTEGERS if text not in ("-0", " 1", "1 ", "1\n")] + ["1.5", "1E0", "true", "[1]", "{}"]
    for text in odd + [f'"{number}"' for number in EDGES]:
        pair.step(notify("5", text), 400, f"the number {text[:30]!r}", "BAD_REQUEST")
    # Of a member that stands there twice the last counts.
    told = pair.step(notify('5,"device_id":6'), 200, "a member twice")
    expect(told["delete_device_ids"], [6], "a member twice")
    pair.step(notify('5,"device_id":"6"'), 400, "a member twice, the last one malformed", "BAD_REQUEST")
    by_token = pair.second.item(Phone("apns", 7), message(1, "x"))
    for number in (-1, 2**32, 2**53 + 1, 2**63, -2**63, 1.5, "1"):
        by_token["payload"]["push_key_id"] = number
        pair.step(pair.second.notify([by_token]), 400, f"push_key_id {number!r}", "BAD_REQUEST")
    keyed = {**pair.second.account_item(pair.keyed, message(1, "x")), "device_id": 5}
    for number in (2**63, -2**63 - 1, 2**64, 1.5, "5", None, True):
        keyed["payload"]["push_account_id"] = number
        pair.step(pair.second.notify([keyed]), 400, f"push_account_id {number!r}", "BAD_REQUEST")
    for text in NO_INTEGERS:
        pair.step(pair.second.join(pair.phone, push_account_id=text), 400, f"push_account_id {text[:30]!r}",
                  "BAD_REQUEST")


def faults(pair):
    """Two faults at once: the first of the order of §14.5 and §14.6 is the one that is told."""
    second, phone = pair.second, AccountPhone("apns", 9, "zap")
    key = second.bouncer_key
    nobody, old = str(uuid.uuid4()), int(time.time()) - 2 * DAY_SECONDS
    ahead = int(time.time()) + 2 * DAY_SECONDS
    stranger = pair.door.ask("POST", "push/e2ee/register", auth=(second.id, "x" * 64), form={})
    pair.step(stranger, 401, "a wrong key, and nothing else", "UNAUTHORIZED")
    for answer, status, code, what in (
            (second.join(phone, realm_uuid=nobody, bouncer_public_key=None), 400, "REQUEST_VARIABLE_MISSING",
             "a missing key before an unknown realm"),
            (second.join(phone, realm_uuid=nobody, bouncer_public_key=stranger_key()), 403, "MISSING_REMOTE_REALM",
             "an unknown realm before another's key"),
            (second.join(phone, phone.blob(stranger_key()), bouncer_public_key=stranger_key()), 400, CODE,
             "another's key before a box that does not open"),
            (second.join(phone, phone.blob(key, timestamp=old), token_kind="fcm"), 400, "BAD_REQUEST",
             "another kind before an outdated blob"),
            (second.join(phone, phone.blob(key, timestamp=old, token="abc")), 400, "BAD_REQUEST",
             "a malformed token before an outdated blob"),
            (second.join(phone, phone.blob(key, timestamp=ahead)), 400, "BAD_REQUEST", "a blob of the day after"),
            (second.join(phone, phone.blob(key, timestamp=old)), 400, EXPIRED, "an outdated blob"),
            (second.notify([{"device_id": 5}], realm=nobody), 400, "BAD_REQUEST",
             "a malformed item before an unknown realm"),
            (second.notify([{"device_id": 5}], realm=pair.first.realm), 400, "BAD_REQUEST",
             "a malformed item before another's realm")):
        pair.step(answer, status, what, code)
    doubles = [("realm_uuid", pair.first.realm), ("realm_uuid", second.realm), ("push_account_id", "007"),
               ("push_account_id", "9"), ("bouncer_public_key", stranger_key()), ("bouncer_public_key", key),
               ("encrypted_push_registration", "AAAA"), ("encrypted_push_registration", phone.blob(key))]
    url = pair.door.url + PREFIX + "push/e2ee/register"
    pair.step(raw(pair.door.session, url, doubles, second.auth), 200, "names twice, the last ones good")
    pair.step(raw(pair.door.session, url, [*doubles, ("push_account_id", "007")], second.auth), 400,
              "the last one malformed", "BAD_REQUEST")


def bodies(pair):
    """Bodies that are no call: one clear error each, whatever good call they are like."""
    realm, door, auth = pair.second.realm, pair.door, pair.second.auth
    good = f'{{"realm_uuid":"{realm}","push_requests":[]}}'

    def with_member(text):
        return good[:-1] + "," + text + "}"

    for body in ("", "[]", "null", good + "x", good + good, "\ufeff" + good, good.replace('"', "'"),
                 "[" * 5_000 + "]" * 5_000, f'{{"realm_uuid":"{realm}"}}', *map(with_member, (
                     '"x":NaN', '"x":"\\ud800"', '"x":"\n"', '"push_requests":{}', '"push_requests":null',
                     '"push_requests":[1]', '"realm_uuid":5', '"x":"' + "a" * (5 << 20) + '"'))):
        answer = door.ask("POST", "push/e2ee/notify", auth=auth, body=body.encode())
        pair.step(answer, 400, f"the body {body[-60:]!r}", "BAD_REQUEST")
    for body, headers in ((with_member('"x":"@"').encode().replace(b"@", b"\xff"), {}),
                          (gzip.compress(good.encode()), {"Content-Encoding": "gzip"})):
        answer = door.ask("POST", "push/e2ee/notify", auth=auth, body=body, headers=headers)
        pair.step(answer, 400, f"the body {body[-60:]!r}", "BAD_REQUEST")
    pair.step(door.ask("POST", "push/e2ee/notify", auth=auth, body=good.encode()), 200, "the good one")
    # Of a member that stands there twice the last counts, the realm too.
    for one, other, status in ((pair.first.realm, realm, 200), (realm, pair.first.realm, 403)):
        body = f'{{"realm_uuid":"{one}","realm_uuid":"{other}","push_requests":[]}}'
        pair.step(door.ask("POST", "push/e2ee/notify", auth=auth, body=body.encode()), status, "two realms")


def at_once(pair):
    """Registrations of one phone that come at the same time are one row."""
    phone = AccountPhone("apns", 77, "zap")

    def register(_):
        key = pair.second.bouncer_key
        form = {"realm_uuid": pair.second.realm, "push_account_id": "77", "bouncer_public_key": key,
                "encrypted_push_registration": phone.blob(key)}
        return requests.post(pair.door.url + PREFIX + "push/e2ee/register", data=form, auth=pair.second.auth,
                             timeout=15)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        told = [pair.step(answer, 200, "at once")["device_id"] for answer in pool.map(register, range(32))]
    expect(len(set(told)), 1, "ids of one phone")


def leaves(pair):
    """The second's end takes its own rows alone."""
    pair.step(pair.door.ask("POST", "server/deactivate", auth=pair.second.auth, body=b"{}"), 200, "deactivate")
    pair.step(pair.second.notify([]), 401, "behind its end", "UNAUTHORIZED")
    pair.first_is_whole("the second's end")


def hostile_server(folder):
    need_modules("nacl", "requests")
    with relay(folder) as run:
        pair = Pair(run)
        server_row(pair)
        return None, f"{pair.calls} calls; nothing of the first server's is changed or told"


ROWS = [("Python as hostile server at our relay", hostile_server)]
