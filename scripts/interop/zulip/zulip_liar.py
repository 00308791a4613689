"""A row in which foreign code is a hostile relay of our origin: it answers with what is none, without end, and about
phones that are not asked for. Written from the protocol's description.
"""
import json
import time

from tools import Failed, expect
from .zulip_bouncer import ELSEWHERE, ENDLESS, ENDLESS_BYTES, NOT_HERE, Bouncer, foreign
from .zulip_clients import USER, Client, ZapPhone

OTHER = "bob@example.com"
OTHERS_SECONDS = 5
SUCCESS = {"result": "success", "msg": ""}
# No answer to a registration, each.
LIES = [
    (200, {}, {**SUCCESS, "device_id": -1}), (200, {}, {**SUCCESS, "device_id": 0}),
    (200, {}, {**SUCCESS, "device_id": 2**63}), (200, {}, {**SUCCESS, "device_id": 1.5}),
    (200, {}, {**SUCCESS, "device_id": None}), (200, {}, {**SUCCESS, "device_id": True}),
    (200, {}, {**SUCCESS, "device_id": [5]}), (200, {}, {**SUCCESS, "device_id": "5"}), (200, {}, SUCCESS),
    (200, {}, {"result": "error", "msg": "", "device_id": 5}), (200, {}, [5]), (200, {}, "[" * 50_000),
    (200, {}, '{"result":"success","msg":"","device_id":5,"device_id":0}'), (200, {}, ""), (200, {}, NOT_HERE),
    (201, {}, {**SUCCESS, "device_id": 5}), (200, {}, ENDLESS), (307, ELSEWHERE, ""), (302, ELSEWHERE, ""),
    (400, {}, {"result": "error", "msg": "", "code": "SOMETHING_ELSE"}), (400, {}, NOT_HERE), (404, {}, NOT_HERE),
    (403, {}, {"result": "error", "msg": "", "code": "MISSING_REMOTE_REALM"}), (500, {}, ENDLESS)]


class Liar(Bouncer):
    """`lies` has for an account id what it is told the first time, `lists` for a realm a function that makes a page of
    the list of stale ids from the query.
    """

    def __init__(self):
        super().__init__()
        self.lies, self.lists, self.pages = {}, {}, {}

    def register(self, form):
        lie = self.lies.pop(form["push_account_id"], None)
        self.script = [lie] if lie else []
        return super().register(form)

    def stale(self, query):
        realm = query["realm_uuid"]
        self.pages[realm] = self.pages.get(realm, 0) + 1
        return self.lists[realm](query) if realm in self.lists else page([])

    def device_id(self, phone):
        [found] = [each for key, each in self.rows.items() if key[1] == str(phone.account_id)]
        return found


def page(ids, after=None):
    return 200, {}, {**SUCCESS, "device_ids": ids, "next_after": after}


class Users:
    """A user in each of two realms, with phones at one origin."""

    def __init__(self, bouncer, origin, key):
        self.bouncer, self.origin = bouncer, origin
        origin.operator("realm", "add", "other")
        other = json.loads(origin.operator("user", "add", OTHER, "--realm", "other"))["key"]
        realms = json.loads(origin.operator("realm", "list"))["realms"]
        self.realms = {each["name"]: each["uuid"] for each in realms}
        self.ada, self.bob = Client(origin.url, key), Client(origin.url, other, OTHER)

    def join(self, client, phones, what):
        """All at once: each becomes active in its time."""
        for phone in phones:
            client("POST", "mobile_push/register", **phone.fields(self.bouncer.public_key))
        told = [(each["op"], each["push_account_id"]) for each in client.next(2 * len(phones), what)]
        expect(sorted(told), sorted((op, phone.account_id) for op in ("add", "update") for phone in phones), what)

    def lists(self, what, changes, **lists):
        """Asks for the lists of both realms, and waits for the given number of pages of the first."""
        self.bouncer.pages, self.bouncer.lists = {}, {self.realms[name]: made for name, made in lists.items()}
        self.origin.operator("stale")
        self.bouncer.until(lambda: len(self.bouncer.pages) == len(self.realms), what)
        gone = [(each["op"], each["push_account_id"]) for each in self.ada.next(len(changes), what)]
        expect(sorted(gone), sorted(("remove", phone.account_id) for phone in changes), what)


def talk(bouncer, origin, key):
    users = Users(bouncer, origin, key)
    phones = [ZapPhone("fcm") for _ in LIES]
    bouncer.lies = {str(phone.account_id): lie for phone, lie in zip(phones, LIES)}
    users.join(users.ada, phones, "a relay that lies")
    expect((bouncer.strayed, bouncer.lies), (0, {}), "redirects that were followed")
    if not 0 < bouncer.endless_bytes < ENDLESS_BYTES:
        raise Failed(f"{bouncer.endless_bytes} bytes of bodies without end were taken")
    bobs = ZapPhone("apns")
    users.join(users.bob, [bobs], "the other user")
    dead_ids(users, phones, bobs)
    stale_ids(users, phones, bobs)
    users.bob.quiet("what was said of others")
    return users.ada.calls + users.bob.calls


def dead_ids(users, phones, bobs):
    """What an answer to one realm's notification says of another's ids, or of no ids at all, ends nothing."""
    bouncer = users.bouncer
    mine, theirs = bouncer.device_id(phones[0]), bouncer.device_id(bobs)
    for dead in ([theirs], [str(mine)], [mine + 0.5], [None, True, {}], {"a": mine}, "x", list(range(5_000))):
        bouncer.notify_script = [(200, {}, {
            **SUCCESS, "apple_successfully_sent_count": 1, "android_successfully_sent_count": 0,
            "delete_device_ids": dead})]
        begun = len(bouncer.notified_at)
        users.origin.operator("notify", USER, "x")
        bouncer.until(lambda: len(bouncer.notified_at) > begun, "a notification")
        bouncer.until(lambda: not bouncer.notify_script, "its answer")
    time.sleep(0.5)
    users.ada.quiet("dead ids that are none of hers")
    users.bob.quiet("dead ids of another realm's answer")


def stale_ids(users, phones, bobs):
    """A list names those of its own realm alone; one that does not rise is not taken, and none goes on for ever."""
    bouncer = users.bouncer
    ids = sorted(bouncer.device_id(phone) for phone in phones)
    theirs, first, rest = bouncer.device_id(bobs), phones[0], phones[1:]
    mine = bouncer.device_id(first)
    users.lists("another realm's id", [], chat=lambda _: page([theirs]), other=lambda _: page(ids))
    lies = [page(ids[::-1]), page([mine, mine]), page([str(mine)]), page([mine], mine - 1), page([-5]), page([mine], 0),
            page([mine], "x"), page([mine], 2**63), (200, {}, {**SUCCESS, "device_ids": [mine]}), (200, {}, ENDLESS),
            (200, {}, NOT_HERE), (200, {}, {**SUCCESS, "device_ids": {"a": mine}, "next_after": None}),
            (302, ELSEWHERE, ""), (400, {}, {"result": "error", "msg": "", "code": "BAD_REQUEST"})]
    for lie in lies:
        users.lists(f"the list {str(lie)[:80]}", [], chat=lambda _, lie=lie: lie)
    users.ada.quiet("lists that are none")
    endless_list(users, rest)
    users.lists("a list", [first], chat=lambda _: page([mine]))
    expect(bouncer.strayed, 0, "redirects that were followed")
    expect(len(rest), len(users.ada.state["push_account_ids"]), "who is left")


def endless_list(users, phones):
    """One id a page, for ever: others are served beside it, and it ends where it no longer rises."""
    bouncer, realm, newer = users.bouncer, users.realms["chat"], ZapPhone("fcm")
    users.lists("a list without end", [], chat=lambda query: page(
        [int(query.get("after", 0)) + 1], int(query.get("after", 0)) + 1))
    bouncer.until(lambda: bouncer.pages[realm] > 20, "a list without end")
    begun = time.monotonic()
    users.join(users.ada, [newer], "beside a list without end")
    sent = len(bouncer.notified)
    users.origin.operator("notify", USER, "x")
    bouncer.until(lambda: len(bouncer.notified) == sent + len(phones) + 2, "beside a list without end")
    expect(time.monotonic() - begun < OTHERS_SECONDS, True, "others were served beside a list without end")
    users.ada("POST", "mobile_push/forget", push_account_id=str(newer.account_id))
    users.ada.next(1, "forgotten")
    before = bouncer.pages[realm]
    bouncer.lists[realm] = lambda query: page([int(query["after"])], int(query["after"]))
    time.sleep(1)
    told = bouncer.pages[realm]
    time.sleep(1)
    expect((bouncer.pages[realm], before > 20), (told, True), "pages behind one that does not rise")


ROWS = [("Python as hostile relay of our origin", foreign(talk, Liar))]
