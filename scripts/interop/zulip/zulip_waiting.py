"""A row in which foreign code is a client that waits for events at our origin, with bounds that are small: polls, unread
events and phones. Written from the protocol's description.
"""
import concurrent.futures
import pathlib
import time

import requests

from tools import Failed, expect, need_modules
from .zulip_clients import USER, Client, Stage, ZapPhone, become_active, one_process
from .zulip_peer import answered

OTHER = "bob@example.com"
HEARTBEAT_SECONDS, SLACK_SECONDS = 25, 3
POLLS, QUEUES, EVENTS, PHONES = 3, 100, 10, 3
SETTINGS = [f"origin.limits.{name}={value}" for name, value in (
    ("waiting_polls", POLLS), ("events_per_queue", EVENTS), ("devices_per_user", PHONES))]
SOON_SECONDS = 2


class Waiting:
    """Polls, each on a connection of its own; a poll's answer is its status, code or events, and how long it took."""

    def __init__(self, stage, pool):
        self.stage, self.pool = stage, pool

    def poll(self, auth, queue, last=-1):
        begun = time.monotonic()
        answer = requests.get(f"{self.stage.url}/api/v1/events", auth=auth, timeout=60, params={
            "queue_id": queue, "last_event_id": last})
        told = answer.json()
        if answer.status_code == 429:
            expect(int(answer.headers["Retry-After"]) >= 1, True, "Retry-After")
        return answer.status_code, told.get("code") or told["events"], time.monotonic() - begun

    def waits(self, auth, queue, count):
        """A poll that is waiting, beside others: `count` in all."""
        future = self.pool.submit(self.poll, auth, queue)
        ends = time.monotonic() + SOON_SECONDS * 5
        while self.stage.operator("status")["waiting_polls"] != count:
            if time.monotonic() > ends:
                raise Failed(f"{count} polls do not wait: {future.done() and future.result()}")
            time.sleep(0.05)
        return future

    @staticmethod
    def ended(future, status, what, code=None):
        told = future.result(SOON_SECONDS)
        expect((told[0], code in (None, told[1])), (status, True), what)
        return told[1]


def talk(stage):
    ada = stage.client
    bobs_key = stage.operator("user", "add", OTHER)["key"]
    bob = Client(stage.url, bobs_key, OTHER)
    mine, theirs = (USER, stage.key), (OTHER, bobs_key)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        waiting = Waiting(stage, pool)
        quiet = waiting.waits(theirs, bob.queue, 1)
        woken = waiting.waits(mine, ada.queue, 2)
        other = ada("POST", "register")["queue_id"]
        closed = waiting.waits(mine, other, 3)
        # As many as may wait do; whoever wants no wait is answered.
        status, code, _ = waiting.poll(mine, ada("POST", "register")["queue_id"])
        expect((status, code), (429, "RATE_LIMIT_HIT"), "a poll too many")
        ada("GET", "events", queue_id=ada.queue, last_event_id=-1, dont_block="true")
        # Whoever polls a queue again takes the place of their own poll, which has lost its client perhaps.
        again = waiting.pool.submit(waiting.poll, mine, other)
        [event] = waiting.ended(closed, 200, "a poll in whose place another came")
        expect(event["type"], "heartbeat", "a poll in whose place another came")
        # A queue that goes for newer ones ends its poll: no user holds more than their queues.
        for _ in range(QUEUES):
            ada("GET", "events", queue_id=ada.queue, last_event_id=-1, dont_block="true")
            ada("POST", "register")
        waiting.ended(again, 400, "a queue that went for newer ones", "BAD_EVENT_QUEUE_ID")
        other = ada("POST", "register")["queue_id"]
        closed = waiting.waits(mine, other, 3)
        ada("DELETE", "events", queue_id=other)
        waiting.ended(closed, 400, "a queue that was closed", "BAD_EVENT_QUEUE_ID")
        phones = bounds(stage, waiting, woken)
        overflow(stage, phones[0])
        status, events, seconds = quiet.result(HEARTBEAT_SECONDS + SLACK_SECONDS)
        expect((status, [each["type"] for each in events]), (200, ["heartbeat"]), "a poll without events")
        if not HEARTBEAT_SECONDS - 1 <= seconds <= HEARTBEAT_SECONDS + SLACK_SECONDS:
            raise Failed(f"a heartbeat after {seconds:.1f} s")
        bob.last = -1
        bob.quiet("another's events")
    expect(stage.operator("status")["waiting_polls"], 0, "polls that wait at the end")
    # A server that stops waits for kept connections.
    for client in (ada, bob):
        client.session.close()


def bounds(stage, waiting, woken):
    """An event wakes the poll that waits; a phone too many is refused, and a repeat of one that is there is not."""
    ada, key = stage.client, stage.bouncer_key
    phones = [ZapPhone("fcm") for _ in range(PHONES)]
    ada("POST", "mobile_push/register", **phones[0].fields(key))
    [event, *_] = waiting.ended(woken, 200, "a poll that was woken")
    expect((event["type"], event["op"]), ("push_account", "add"), "a poll that was woken")
    ada.begin()
    stage.settled("the first phone")
    ada.begin()
    for phone in phones[1:]:
        become_active(ada, phone, key)
    ada("POST", "mobile_push/register", 400, "BAD_REQUEST", **ZapPhone("fcm").fields(key))
    for phone in phones:
        ada("POST", "mobile_push/register", **phone.fields(key))
    stage.settled("repeats")
    ada.quiet("repeats, and a phone too many")
    ada("POST", "mobile_push/forget", push_account_id=str(phones[0].account_id))
    ada.next(1, "one is forgotten")
    become_active(ada, phones[0], key)
    return phones


def overflow(stage, phone):
    """A queue with more events than it may hold is closed; one that holds fewer, and one that is read, go on."""
    ada, queues, made = stage.client, {}, 0
    while made <= EVENTS:
        queues[ada("POST", "register")["queue_id"]] = made
        ada("POST", "mobile_push/forget", push_account_id=str(phone.account_id))
        ada.next(1, "forgotten")
        become_active(ada, phone, stage.bouncer_key)
        made += 3
    for queue, before in queues.items():
        told = ada.ask("GET", "events", queue_id=queue, last_event_id=-1, dont_block="true")
        if made - before > EVENTS:
            answered(told, 400, "a queue that is full", "BAD_EVENT_QUEUE_ID")
        else:
            expect(len(answered(told, 200, "a queue")["events"]), made - before, "events that nobody has read")
    ada.quiet("a queue that is read")


def row(folder):
    need_modules("nacl", "requests")
    with one_process(pathlib.Path(folder), *SETTINGS) as (served, url, key, place):
        stage = Stage(served, url, key, place)
        talk(stage)
        return None, f"{stage.client.calls} calls within small bounds, and a heartbeat"


ROWS = [("Python as waiting client of our origin", row)]
