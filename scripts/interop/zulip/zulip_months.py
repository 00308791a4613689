"""A row in which months go by: the clocks of relay, origin and phones are moved, and the phones of the command line
repeat their registrations, or do not.
"""
import contextlib
import sqlite3

from tools import expect
from .moved import Phone, World

DAY_MS = 86_400_000
REPEAT_DAY, COLLECTED_DAY, FORGOTTEN_DAY = 31, 74, 401
# How long the relay keeps what is never repeated, and what has died.
LIFE_DAYS, DEAD_DAYS = 400, 42


def rows_at_relay(world, count, what):
    """Of each registration: whether it has died, when it was last confirmed, and how many days it lasts from then.

    The relay is not running.
    """
    with contextlib.closing(sqlite3.connect(f"file:{world.relay_state / 'relay.sqlite'}?mode=ro", uri=True)) as store:
        found = store.execute(
            "SELECT key, state, touched_at, expires_at FROM records WHERE space GLOB '*/device' "
            "OR space GLOB '*/account'").fetchall()
    expect(len(found), count, f"{what}: registrations at the relay")
    return {key: (state == 1, touched, (end - touched) / DAY_MS) for key, state, touched, end in found}


def repeats(phones, what):
    """An app that starts repeats what is due; once more at a user's word changes nothing."""
    for phone in phones:
        name = phone.name
        phone.starts()
        phone("repeat")
        phone.starts()
        expect(phone.is_active(what), name, f"{what}: its id")


def months(folder):
    world = World(folder)
    living = [Phone(world, "living-v12", "v12", "apns"), Phone(world, "living-zap", "zap", "fcm")]
    silent = [Phone(world, "silent-v12", "v12", "fcm"), Phone(world, "silent-zap", "zap", "apns")]
    dying = Phone(world, "dying-zap", "zap", "fcm")
    everybody = living + silent + [dying]
    with world.living():
        for phone in everybody:
            phone.join()
            phone.is_active("joined")
        world.arrives(everybody, "on the first day")
    first = rows_at_relay(world, 5, "the first day")
    expect({row[2] for row in first.values()}, {LIFE_DAYS}, "how long a registration lasts")
    with world.living(REPEAT_DAY) as services:
        repeats(living, "a month later")
        world.arrives(everybody, "a month later")
        services.set_device("fcm", dying, "removed")
        world.arrives(living + silent, "one has died", [dying])
    second = rows_at_relay(world, 5, "a month later")
    renewed = [key for key in second if second[key][1] - first[key][1] >= REPEAT_DAY * DAY_MS]
    dead = [key for key in second if second[key][0]]
    expect((len(renewed), len(dead), {second[key][2] for key in renewed}, {
        second[key] for key in second if key not in renewed + dead}),
        (2, 1, {LIFE_DAYS}, {first[key] for key in first if key not in renewed + dead}), "who has repeated")
    with world.living(COLLECTED_DAY):
        # What has died is collected at the start; its phone, whose token is good again, finds that at its own.
        third = rows_at_relay(world, 4, "what has died is collected")
        expect(third.keys(), second.keys() - set(dead), "what is collected")
        repeats(living, "the second repeat")
        dying.starts()
        expect(dying.is_active("back again"), dying.name, "back again: its id")
        world.arrives(everybody, "back again")
    with world.living(FORGOTTEN_DAY):
        rows_at_relay(world, 3, "what was never repeated is gone")
        world.arrives(living + [dying], "two are gone", silent)
        for phone in silent:
            phone.starts()
            phone.is_active("comes back by itself")
        world.arrives(everybody, "all are back")
        states = world.registrations()
        expect((len(states), set(states.values())), (5, {"active"}), "registrations at last")
    last = rows_at_relay(world, 5, "at last")
    expect({(row[0], row[2]) for row in last.values()}, {(False, LIFE_DAYS)}, "at last")
    return None, f"{world.calls} commands on four days of {FORGOTTEN_DAY}: repeats renew, what died and what is " \
        "silent goes, and comes back by itself"


ROWS = [("Our phones, origin and relay over months", months)]
