"""A row in which the relay stands still for more than a day, and then for more than a week: phones whose registration
nobody took are told, administrators too, and those that are active stay.
"""
import concurrent.futures
import json
import os
import signal
import time

from tools import Failed, expect
from .moved import PATIENCE_SECONDS, UNDER_WAY, Phone, World
from .zulip_clients import EXPIRED, USER, Client

LATE_DAYS, ENDED_DAYS = 1.1, 8.3
QUICK = ("origin.queue.first_retry=1s", "origin.queue.longest_retry=2s")
ALERT = "registration_expired"


def alerts(world):
    """Who was told in the origin's logs that phones must register anew: each sentence."""
    told = []
    for file in sorted(world.folder.glob("origin.*.log")):
        for line in file.read_text().splitlines():
            entry = json.loads(line) if line.startswith("{") else {}
            if (entry.get("event"), entry.get("alert")) == ("alert raised", ALERT):
                told.append(entry["sentence"])
    return told


def until(is_so, what):
    ends = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > ends:
            raise Failed(f"{what}: not within {PATIENCE_SECONDS} s")
        time.sleep(0.2)


def join_in_vain(phones):
    """The server takes them, its relay does not answer; the phones give up waiting, and keep what they have told."""
    with concurrent.futures.ThreadPoolExecutor(len(phones)) as pool:
        list(pool.map(lambda phone: phone.join(status=UNDER_WAY), phones))
    for phone in phones:
        told = phone.status(status=UNDER_WAY)
        expect((told["state"], told["error_code"]), ("pending", None), phone.file.stem)
        phone.name = f"{'device' if phone.profile == 'v12' else 'account'} {told['id']}"


def shown(world, phone):
    """What the server's state has of a phone: state or code."""
    client = Client(world.url, (world.origin_state / f"{USER.split('@')[0]}.key").read_text().strip())
    number = phone.name.split()[1]
    client.session.close()
    if phone.profile == "v12":
        return client.state["devices"][number]["push_registration_error_code"]
    entry = client.state["push_account_ids"].get(number, {})
    return entry.get("error_code") or entry.get("status")


def still(folder):
    world = World(folder, origin_settings=QUICK)
    active = [Phone(world, "active-v12", "v12", "apns"), Phone(world, "active-zap", "zap", "fcm")]
    late = [Phone(world, "late-v12", "v12", "fcm"), Phone(world, "late-zap", "zap", "apns")]
    never = [Phone(world, "never-v12", "v12", "apns"), Phone(world, "never-zap", "zap", "fcm")]
    with world.relay() as relay, world.origin():
        for phone in active:
            phone.join()
            phone.is_active("joined")
        os.kill(relay.pid, signal.SIGSTOP)
        join_in_vain(late)
        active[1]("repeat")
        told = world.operator("status")
        expect((sum(each["count"] for each in told["devices"] if each["state"] == "pending"),
                told["oldest_waiting"] <= time.time() * 1_000), (2, True), "status of those who wait")
        # Stopped, it does not end otherwise.
        relay.kill()
    world.days = LATE_DAYS
    with world.relay(), world.origin():
        until(lambda: all(shown(world, phone) == EXPIRED for phone in late), "a day later")
        states = world.registrations()
        expect([states.get(phone.name) for phone in active], ["active"] * 2, "those that are active")
        until(lambda: alerts(world), "an alert")
        [sentence] = alerts(world)
        expect("must register anew, the first of them since" in sentence and "check the relay's address" in sentence,
               True, sentence)
        for phone in late:
            phone.starts()
            phone.is_active("behind what was refused")
        everybody = active + late
        world.arrives(everybody, "a day later")
    with world.relay() as relay, world.origin():
        os.kill(relay.pid, signal.SIGSTOP)
        join_in_vain(never)
        relay.kill()
    known = len(alerts(world))
    world.days = ENDED_DAYS
    # Nobody refuses them, for there is no relay: the origin itself ends them.
    with world.relay() as relay:
        os.kill(relay.pid, signal.SIGSTOP)
        with world.origin():
            until(lambda: all(shown(world, phone) == EXPIRED for phone in never), "a week later")
            until(lambda: len(alerts(world)) > known, "an alert of a week later")
            states = world.registrations()
            expect([states.get(phone.name) for phone in everybody], ["active"] * 4, "those that are active")
            os.kill(relay.pid, signal.SIGCONT)
            for phone in never:
                phone.starts()
                phone.is_active("behind the end")
    return None, f"{world.calls} commands: {EXPIRED} a day later, the origin's own end after a week, alerts, all back"


ROWS = [("Our phones behind a relay that stands still", still)]
