"""A row in which foreign code is a hundred phones on one account, all at once, and one too many."""
import collections
import concurrent.futures
import pathlib
import time

import requests

from tools import expect, need_modules, relay
from .zulip_clients import USER, Client, Stage, ZapPhone, origin
from .zulip_peer import answered

PHONES = 100
# An account's queues: as many as may be set, and beside them room for those of the looks at the state.
QUEUES, FOLLOWING, TEXTS = 100, 80, 5
JOIN_SECONDS, ANSWER_SECONDS = 60, 10
TOO_MANY = 8


def registers(stage, phone):
    """What one phone is told, and in how many seconds."""
    begun = time.monotonic()
    answer = requests.post(f"{stage.url}/api/v1/mobile_push/register", auth=(USER, stage.key), timeout=30,
                           data=phone.fields(stage.bouncer_key))
    return answer, time.monotonic() - begun


def follows(stage, client, ends):
    """Polls until it has been told of every phone that it became active, or until a moment has come."""
    while time.monotonic() < ends:
        if sum(each["status"] == "active" for each in client.state["push_account_ids"].values()) == PHONES:
            return True
        for event in client("GET", "events", queue_id=client.queue, last_event_id=client.last)["events"]:
            expect(event["id"] > client.last, True, "ids of events rise")
            client.last = event.pop("id")
            if event["type"] != "heartbeat":
                client.apply(event)
    return False


def talk(stage):
    phones = [ZapPhone("apns" if number % 2 else "fcm") for number in range(PHONES)]
    clients = [Client(stage.url, stage.key) for _ in range(FOLLOWING)]
    with concurrent.futures.ThreadPoolExecutor(PHONES + TOO_MANY + FOLLOWING) as pool:
        ends = time.monotonic() + JOIN_SECONDS
        following = [pool.submit(follows, stage, client, ends) for client in clients]
        joined = list(pool.map(lambda phone: registers(stage, phone), phones))
        for answer, seconds in joined:
            answered(answer, 200, "one of a hundred")
            expect(seconds < ANSWER_SECONDS, True, f"an answer after {seconds:.1f} s")
        expect([each.result() for each in following], [True] * len(clients), "who has heard that all are active")
        # One more is one too many, however many ask, and repeats are none.
        extra = [ZapPhone("fcm") for _ in range(TOO_MANY)]
        texts = set()
        for answer, _ in pool.map(lambda phone: registers(stage, phone), extra):
            answered(answer, 400, "the 101st", "BAD_REQUEST")
            texts.add(answer.json()["msg"])
        for answer, _ in pool.map(lambda phone: registers(stage, phone), phones):
            answered(answer, 200, "a repeat of one of a hundred")
        stage.settled("repeats")
        said = list(pool.map(lambda number: stage.operator("notify", USER, f"text {number}")["devices"], range(TEXTS)))
    expect((said, len(texts)), ([PHONES] * TEXTS, 1), "devices of each text, and sentences of refusals")
    arrived(stage, phones)
    state = stage.client.fetch()[1]
    for client in clients:
        told = client("GET", "events", queue_id=client.queue, last_event_id=client.last, dont_block="true")["events"]
        expect(([each for each in told if each["type"] != "heartbeat"], client.state), ([], state),
               "repeats and refusals")
        client.session.close()
    stage.client.session.close()
    return max(seconds for _, seconds in joined), texts.pop()


def arrived(stage, phones):
    """Every phone opens every text, once, and texts have a number each."""
    by_token, found = {phone.token.lower(): phone for phone in phones}, collections.Counter()
    for name in ("production", "fcm"):
        for each in stage.services.arrived(name, TEXTS * PHONES // 2):
            phone = by_token[each["token"].lower()]
            content = phone.open_delivered(each["json"] if name == "production" else each["json"]["message"]["data"])
            found[(phone.token, content["content"], content["message_id"])] += 1
    stage.services.nothing_more("a hundred phones")
    expect((len(found), set(found.values()), len({number for _, _, number in found})), (TEXTS * PHONES, {1}, TEXTS),
           "texts, phones and numbers")


def row(folder):
    need_modules("nacl", "requests")
    folder = pathlib.Path(folder)
    with relay(folder) as served, origin(folder, folder / "state", f"origin.limits.queues_per_user={QUEUES}") as (
            url, key, place):
        slowest, sentence = talk(Stage(served, url, key, place))
        return None, f"slowest registration {slowest:.1f} s; the 101st hears: {sentence}"


ROWS = [("A hundred phones on one account", row)]
