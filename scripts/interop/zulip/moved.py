"""A relay, an origin and phones of the command line that live on together while their clocks are moved ahead: they
are stopped, and start over the same state with the later clock.
"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

from clocks import ahead
from tools import SEALBELL, Failed, expect, free_port, running
from .zulip_clients import USER
from .zulip_peer import Services

PATIENCE_SECONDS = 20
# What `status` ends with while a registration is under way.
UNDER_WAY = 69


class World:
    """Everything of one folder. `days` is how far all clocks are ahead."""

    def __init__(self, folder, *relay_settings, origin_settings=()):
        self.folder, self.days = pathlib.Path(folder), 0
        self.relay_state, self.origin_state = self.folder / "state", self.folder / "state" / "origin"
        # The origin's address is part of a realm, and the relay's of what the origin owes: both stay.
        self.url, self.relay_port = f"http://127.0.0.1:{free_port()}", free_port()
        self.relay_settings, self.origin_settings = relay_settings, origin_settings
        self.served, self.runs, self.calls = None, 0, 0
        # The relay's configuration file, where it has one beside what a sandbox brings.
        self.configuration = None

    def command(self, *words, status=0):
        """What a command says, with the clock of now."""
        self.calls += 1
        told = subprocess.run([SEALBELL, *map(str, words)], cwd=self.folder, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=90, env={**os.environ, **ahead(self.days)})
        if told.returncode not in (status if isinstance(status, tuple) else (status,)):
            raise Failed(f"{' '.join(map(str, words[:3]))} ended with {told.returncode} instead of {status}: "
                         f"{(told.stderr or told.stdout).strip()[-300:]}")
        return told.stdout + told.stderr

    def operator(self, *words, status=0):
        """The origin's operator."""
        told = self.command("origin", *words, "--at", self.origin_state, "--json", status=status)
        return told if status else json.loads(told)

    @contextlib.contextmanager
    def program(self, name, command, is_ready):
        """A server with the clock of now; each run has a log of its own. It ends well, or was killed."""
        self.runs += 1
        log = f"{name}.{self.runs}.log"
        (self.folder / log).touch()
        with running([SEALBELL, *map(str, command)], self.folder, is_ready, log, ahead(self.days),
                     absent=Failed) as process:
            yield process
        expect(process.returncode in (0, -signal.SIGKILL), True, f"the end of {name}, {process.returncode}")

    def trusts(self, state):
        """An operator's word that the clock is right, to a store whose program is not running."""
        if (state / "relay.sqlite").exists():
            self.command("store", "trust-clock", "--yes", f"sqlite:{state / 'relay.sqlite'}")

    @contextlib.contextmanager
    def relay(self):
        file = self.relay_state / "run.json"
        command = ["serve", "--sandbox", "--state", self.relay_state]
        if self.configuration:
            command += ["--config", self.configuration]
        for setting in (f"listeners.public.bind=127.0.0.1:{self.relay_port}", "listeners.admin.bind=127.0.0.1:0",
                        *self.relay_settings):
            command += ["--set", setting]
        self.trusts(self.relay_state)
        # One that was killed has left it behind.
        file.unlink(missing_ok=True)
        with self.program("relay", command, file.exists) as process:
            self.served = json.loads(file.read_text())
            yield process

    @contextlib.contextmanager
    def origin(self):
        command = ["origin", "--at", self.relay_state]
        for setting in (f"listeners.origin.bind={self.url.split('//')[1]}", "listeners.admin.bind=127.0.0.1:0",
                        f"origin.url={self.url}", *self.origin_settings):
            command += ["--set", setting]
        self.trusts(self.origin_state)
        files = [self.origin_state / name for name in ("run.json", f"{USER.split('@')[0]}.key")]
        files[0].unlink(missing_ok=True)
        with self.program("origin", command, lambda: all(file.exists() for file in files)) as process:
            yield process

    @contextlib.contextmanager
    def living(self, days=None):
        """Relay and origin, with clocks so many days ahead; yields the push services."""
        if days is not None:
            self.days = days
        with self.relay(), self.origin():
            services = Services(self.served["urls"]["sandbox-control"])
            yield services
            # A server that stops waits for kept connections.
            services.session.close()

    @property
    def bouncer_key(self):
        return self.served["public_keys"]["zulip-main"][0]

    def registrations(self):
        """Device to state, as the origin's operator sees them."""
        found = self.operator("registrations", "list", USER)["registrations"]
        return {each["device"]: each["state"] for each in found}

    def notify(self, text):
        """A text to the user; what became of it at each device, as soon as none waits."""
        name = self.operator("notify", USER, text)["id"]
        ends = time.monotonic() + PATIENCE_SECONDS
        while True:
            found = {each["device"]: each["state"] for each in self.operator("notification", name)["devices"]}
            if "waiting" not in found.values():
                return found
            if time.monotonic() > ends:
                raise Failed(f"{text}: {found} after {PATIENCE_SECONDS} s")
            time.sleep(0.1)

    def arrives(self, phones, text, dead=()):
        """A text arrives at each of the phones once, and the origin hears of the dead ones."""
        expect(self.notify(text), {**{phone.name: "accepted" for phone in phones},
                                   **{phone.name: "dead" for phone in dead}}, text)
        for phone in phones:
            phone.opens(text, f"{text}: {phone.file.stem}")


class Phone:
    """One phone of the command line, with the clock of its world."""

    def __init__(self, world, name, profile, service="apns"):
        self.world, self.file, self.profile, self.service = world, world.folder / f"{name}.json", profile, service
        self.name = None

    def __call__(self, *words, status=0):
        return self.world.command("device", "zulip", *words, "--state", self.file, status=status)

    def join(self, *words, status=0):
        key_file = self.world.origin_state / f"{USER.split('@')[0]}.key"
        return self("join", self.world.url, "--user", USER, "--key-file", key_file, "--profile", self.profile,
                    "--sandbox", self.world.relay_state, "--service", self.service, *words, status=status)

    def status(self, status=0):
        [told] = json.loads(self("status", "--json", status=status))["accounts"]
        return told

    def starts(self):
        """As an app starts: it registers what is due, and waits until that is over."""
        self("status", status=(0, UNDER_WAY))
        ends = time.monotonic() + PATIENCE_SECONDS
        while self.status(status=(0, UNDER_WAY))["state"] == "pending":
            if time.monotonic() > ends:
                raise Failed(f"{self.file.name} is pending after {PATIENCE_SECONDS} s")
            time.sleep(0.1)

    def is_active(self, what):
        """Looks, as an app that starts. The name by which the origin's operator knows it is kept."""
        told = self.status()
        expect((told["state"], told["profile"], told["error_code"], told["advice"]),
               ("active", self.profile, None, "none"), what)
        self.name = f"{'device' if self.profile == 'v12' else 'account'} {told['id']}"
        return self.name

    @property
    def token(self):
        return json.loads(self.file.read_text())["token"]

    def opens(self, text, what, times=1):
        """What has come since the last time is that text so often, and nothing else."""
        lines = [line for line in self("open").splitlines() if "message" in line]
        expect((len(lines), sum(line.endswith(text) for line in lines)), (times, times), f"{what}: {lines}")
