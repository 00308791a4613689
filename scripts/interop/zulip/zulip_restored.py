"""A row in which a backup of our origin, made while registrations were under way, starts a day later beside the
running original: it ends its own records, and nothing of the original's.
"""
import concurrent.futures
import json
import os
import shutil
import signal
import time

from tools import expect, free_port
from .moved import UNDER_WAY, Phone, World
from .zulip_clients import EXPIRED, USER
from .zulip_expired import until

DAY_LATER = 1.04
QUICK = ("origin.queue.first_retry=1s", "origin.queue.longest_retry=2s")
NOT_COPIED = ("run.json", "lock")


class Copy:
    """The restored origin: its own listener, and the original's address, relay and credentials."""

    def __init__(self, world):
        self.world, self.state = world, world.folder / "copy"
        shutil.copytree(world.origin_state, self.state, ignore=shutil.ignore_patterns(*NOT_COPIED))

    def __call__(self, *words):
        return json.loads(self.world.command("origin", *words, "--at", self.state, "--json"))

    def runs(self):
        file = self.world.folder / "copy.yaml"
        file.write_text(
            f'store: {{ url: "sqlite:relay.sqlite", keys: "{self.world.relay_state / "origin.keys"}" }}\n'
            f'origin:\n  url: "{self.world.url}"\n  contact: admin@acme.test\n'
            f'  credentials: "{self.state / "origin-credentials.json"}"\n'
            f'  relay: {{ url: "{self.world.served["urls"]["public"]}" }}\n'
            f'listeners:\n  origin: {{ bind: "127.0.0.1:{free_port()}" }}\n  admin: {{ bind: "127.0.0.1:0" }}\n')
        return self.world.program("copy", ["origin", "--config", file, "--state", self.state],
                                  (self.state / "run.json").exists)

    def registrations(self):
        """Device to state and code."""
        return {each["device"]: (each["state"], each.get("code"))
                for each in self("registrations", "list", USER)["registrations"]}

    def clock_alerts(self):
        [log] = self.world.folder.glob("copy.*.log")
        entries = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
        return [each["event"] for each in entries if each.get("alert") == "clock_doubted"]


def all_active(world, phones, what):
    expect(world.registrations(), {phone.name: "active" for phone in phones}, what)


def backup(world, early, late):
    """A copy of the origin's files of a moment at which the relay has not answered for the late phones."""
    with world.relay() as relay, concurrent.futures.ThreadPoolExecutor(len(late)) as pool:
        with world.origin() as original:
            for phone in early:
                phone.join()
                phone.is_active("joined")
            os.kill(relay.pid, signal.SIGSTOP)
            joins = [pool.submit(phone.join, status=(0, UNDER_WAY)) for phone in late]
            until(lambda: list(world.registrations().values()).count("pending") == len(late), "who waits")
            original.kill()
            original.wait()
        copy = Copy(world)
        os.kill(relay.pid, signal.SIGCONT)
        with world.origin():
            for join in joins:
                join.result()
            for phone in late:
                phone.starts()
                phone.is_active("behind the backup")
            all_active(world, early + late, "the original")
    return copy


def restored(folder):
    world = World(folder, origin_settings=QUICK)
    early = [Phone(world, "early-v12", "v12", "apns"), Phone(world, "early-zap", "zap", "fcm")]
    late = [Phone(world, "late-v12", "v12", "fcm"), Phone(world, "late-zap", "zap", "apns")]
    copy = backup(world, early, late)
    everybody = early + late
    kept = {early[0].name: ("active", None), early[1].name: ("active", None), late[0].name: ("failed", EXPIRED)}
    with world.living(DAY_LATER):
        with copy.runs():
            # What it owed it has asked once more, and was told that it is a day old.
            until(lambda: copy.registrations() == kept, "the copy's own records")
            until(lambda: copy.clock_alerts() == ["alert raised"], "a clock in doubt")
            all_active(world, everybody, "the original beside its copy")
            world.arrives(everybody, "from the original")
            world.command("store", "trust-clock", "--at", copy.state, "--yes")
            until(lambda: copy.clock_alerts() == ["alert raised", "alert cleared"], "a clock that is believed")
            time.sleep(1)
            expect(copy.registrations(), kept, "the copy behind the operator's word")
            told = copy("notify", USER, "from the copy")
            expect(told["devices"], len(early), "from the copy")
            until(lambda: {each["state"] for each in copy("notification", told["id"])["devices"]} == {"accepted"},
                  "from the copy")
            for phone in early:
                phone.opens("from the copy", phone.file.stem)
            all_active(world, everybody, "the original behind the copy's notification")
        world.arrives(everybody, "behind the copy")
        for phone in everybody:
            phone.is_active("behind the copy")
    return None, f"{world.calls} commands: the copy ends its own records, all {len(everybody)} of the original stay"


ROWS = [("Our origin's backup beside the original", restored)]
