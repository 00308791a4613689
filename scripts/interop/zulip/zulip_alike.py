"""A row that measures whether one server at our relay can tell another's device ids from made-up ones, in answer or
time: thousands of notify calls of each kind, in random order, compared by their ranks. Fifty microseconds are seen.
"""
import json
import math
import os
import random
import secrets
import statistics
import time

from tools import Failed, expect, need_modules, relay
from .conversation import message
from .zulip_forms import AccountPhone, FormsServer
from .zulip_hostile import alike
from .zulip_peer import Door, Services, answered

CALLS = int(os.environ.get("SEALBELL_ALIKE_CALLS", "2000"))
KINDS = ("own dead", "other's live", "other's dead", "made up")
# What chance gives once in 15,000 comparisons.
DEVIATIONS = 4


def deviation(one, other):
    """The rank test of Mann, Whitney and Wilcoxon: by how many standard deviations the two differ."""
    ranked = sorted([(seconds, 0) for seconds in one] + [(seconds, 1) for seconds in other])
    ranks = sum(number for number, (_, which) in enumerate(ranked, 1) if which == 0)
    count, others = len(one), len(other)
    mean = count * (count + others + 1) / 2
    return (ranks - mean) / math.sqrt(count * others * (count + others + 1) / 12)


class Measured:
    def __init__(self, run):
        self.door, self.services = Door(run["urls"]["public"]), Services(run["urls"]["sandbox-control"])
        key = run["public_keys"]["zulip-main"][0]
        self.server, self.other = (FormsServer(self.door, key, f"s-{secrets.token_hex(4)}.example.org") for _ in "ab")
        phones = {"own dead": self.server, "other's live": self.other, "other's dead": self.other}
        self.ids = {}
        for server in (self.server, self.other):
            answered(server.sign_up(), 200, "sign-up")
            answered(server.analytics(), 200, "analytics")
        for number, (kind, server) in enumerate(phones.items()):
            phone = AccountPhone("apns", number + 5, "zap")
            phone.device_id = answered(server.join(phone), 200, kind)["device_id"]
            self.ids[kind] = phone.device_id
            if kind.endswith("dead"):
                self.services.set_device("production", phone, "expired")
                told = answered(server.notify([server.account_item(phone, message(1, "x"))]), 200, kind)
                expect(told["delete_device_ids"], [phone.device_id], kind)
        self.item = self.server.account_item(phone, message(1, "to somebody"))

    def ask(self, kind):
        """One call: its seconds and its answer."""
        # Of as many digits as most of the relay's, which have 63 random bits.
        number = self.ids.get(kind) or random.randrange(10**18, 2**63)
        body = json.dumps({"realm_uuid": self.server.realm, "push_requests": [{**self.item, "device_id": number}]})
        begun = time.perf_counter()
        answer = self.door.ask("POST", "push/e2ee/notify", auth=self.server.auth, body=body.encode())
        seconds = time.perf_counter() - begun
        expect(answered(answer, 200, kind)["delete_device_ids"], [number], kind)
        return seconds, number, answer


def measure(folder):
    need_modules("nacl", "requests")
    with relay(folder) as run:
        talk = Measured(run)
        for kind in talk.ids:
            (_, number, answer), (_, other, unknown) = talk.ask(kind), talk.ask("made up")
            if len(str(number)) == len(str(other)):
                alike(answer, unknown, (number, other), kind)
        order = [kind for kind in KINDS for _ in range(CALLS)]
        random.SystemRandom().shuffle(order)
        times = {kind: [] for kind in KINDS}
        for kind in order:
            times[kind].append(talk.ask(kind)[0] * 1_000)
        talk.services.nothing_more("ids of nobody")
        talk.services.session.close()
        talk.door.session.close()
    told = {kind: deviation(times[kind], times["made up"]) for kind in KINDS[:-1]}
    note = ", ".join(f"{kind} {statistics.median(times[kind]):.3f} ms" + (
        f" ({told[kind]:+.1f} deviations)" if kind in told else "") for kind in KINDS)
    if max(abs(each) for kind, each in told.items() if kind != "own dead") > DEVIATIONS:
        raise Failed(f"another's ids are told by time: {note}")
    return None, f"medians of {CALLS} calls: {note}"


ROWS = [("Python as server that measures ids", measure)]
