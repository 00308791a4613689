"""Rows in which the relay that our origin calls is gone for a while, comes back smaller or with another certificate,
and in which it answers late and wrongly. Whatever is owed arrives, each text once, and nothing is asked for in haste.
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import time

import requests

from tools import SEALBELL, Failed, certificates, expect, free_port, need, need_modules, running
from tools import relay as plain_relay
from .zulip_bouncer import NOT_HERE, Origin, foreign, statuses
from .zulip_clients import USER, Client, ZapPhone, become_active
from .zulip_peer import Services

NAME = "relay.test"
TEXTS, AWAY_SECONDS = 20, 4
# Behind a return: what a call that nobody answered waits at most, and what a slow machine needs.
BACK_SECONDS, PATIENCE_SECONDS = 10, 150
# Tries of a lane that hears nothing at all: it asks with one call, and doubles the wait.
TRIES_AWAY = 3, 40
# Once a minute an origin looks at what it has to tell; then a registration's next try has its turn.
TOLD_SECONDS = 90
LATE_SECONDS = 32


@contextlib.contextmanager
def relay(folder, port, authority, *settings):
    """A relay that serves from the same state each time, with a certificate of that folder; yields its process and
    what its run file says.
    """
    file = folder / "state" / "run.json"
    file.unlink(missing_ok=True)
    command = [SEALBELL, "serve", "--sandbox", "--state", str(folder / "state")]
    for setting in (f"listeners.public.bind=127.0.0.1:{port}", f"listeners.public.tls.cert={authority}/leaf.pem",
                    f"listeners.public.tls.key={authority}/leaf.key", "listeners.admin.bind=127.0.0.1:0", *settings):
        command += ["--set", setting]
    with running(command, folder, file.exists, "relay.log", absent=Failed) as process:
        yield process, json.loads(file.read_text())


def counted(origin, outcome):
    """Answers of all lanes of the origin with that outcome, as its metrics have them."""
    urls = json.loads((origin.state / "run.json").read_text())["urls"]
    text = requests.get(urls["admin"] + "/metrics", timeout=15).text
    return sum(map(int, re.findall(
        rf'^sealbell_push_answers_total\{{lane="origin[^}}]*outcome="{outcome}"[^}}]*\}} (\d+)', text, re.MULTILINE)))


class Stage:
    """One origin, phones, and a relay that comes and goes."""

    def __init__(self, folder, origin, port, certificate):
        self.folder, self.origin, self.port, self.certificate = folder, origin, port, certificate
        self.phones, self.client, self.took = [], None, []

    def begin(self, served):
        self.key = served["public_keys"]["zulip-main"][0]
        self.origin.operator("sign-up")
        self.origin.operator("realm", "add", "chat")
        self.client = Client(self.origin.url, json.loads(self.origin.operator("user", "add", USER))["key"])
        for _ in range(3):
            phone = ZapPhone("fcm")
            become_active(self.client, phone, self.key)
            self.phones.append(phone)

    def owe(self, count, what):
        """So many texts, each to all phones that are active."""
        said = [f"{what} {number}" for number in range(count)]
        for text in said:
            expect(json.loads(self.origin.operator("notify", USER, text))["devices"], len(self.phones), "devices")
        return said

    def arrive(self, services, said, what):
        """Each phone gets each of the texts once, and nothing else; in which order is nobody's promise."""
        begun, count = time.monotonic(), len(said) * len(self.phones)
        while services.deliveries("fcm") < count and time.monotonic() < begun + PATIENCE_SECONDS:
            time.sleep(0.05)
        self.took.append((what, time.monotonic() - begun))
        by_token, found = {phone.token: phone for phone in self.phones}, {phone.token: [] for phone in self.phones}
        for each in services.arrived("fcm", count):
            body = each["json"]["message"]["data"]
            found[each["token"]].append(by_token[each["token"]].open_delivered(body)["content"])
        for texts in found.values():
            expect(sorted(texts), sorted(said), what)
        services.nothing_more(what)

    @contextlib.contextmanager
    def relay(self, *settings, certificate=None):
        with relay(self.folder, self.port, certificate or self.certificate, *settings) as (process, served):
            yield process, Services(served["urls"]["sandbox-control"])


def restarts(folder):
    need("openssl")
    need_modules("nacl", "requests")
    for name in ("one", "other"):
        (folder / name).mkdir()
        certificates(folder / name, NAME)
    port = free_port()
    place = folder / "of"
    place.mkdir()
    origin = Origin(place, f"https://localhost:{port}", folder / "one" / "ca.pem")
    stage = Stage(folder, origin, port, folder / "one")
    with contextlib.ExitStack() as at_end:
        with relay(folder, port, folder / "one") as (process, served):
            at_end.enter_context(origin.runs())
            stage.begin(served)
            stage.arrive(Services(served["urls"]["sandbox-control"]), stage.owe(2, "first"), "at first")
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        away(stage)
        certificate(stage)
        stage.client.session.close()
    late = [f"{what} {seconds:.0f} s" for what, seconds in stage.took if seconds > BACK_SECONDS]
    if late:
        raise Failed("all arrived, but late: " + ", ".join(late))
    return None, "; ".join(f"{what} {seconds:.1f} s" for what, seconds in stage.took)


def away(stage):
    """Nobody is there while texts and a registration are owed, and the list of the dead is asked for."""
    tries = counted(stage.origin, "retry")
    said = stage.owe(TEXTS, "while it is away")
    newer = ZapPhone("fcm")
    stage.client("POST", "mobile_push/register", **newer.fields(stage.key))
    statuses(stage.client, newer, [("add", "pending", None)], "a registration")
    stage.origin.operator("stale")
    # What apps are told of the server does not go with the weather.
    told = requests.get(stage.origin.url + "/api/v1/server_settings", timeout=5).json()
    expect(told["encrypted_push_notifications"], True, "server_settings")
    time.sleep(AWAY_SECONDS)
    tries = counted(stage.origin, "retry") - tries
    if not TRIES_AWAY[0] <= tries <= TRIES_AWAY[1]:
        raise Failed(f"{tries} tries in {AWAY_SECONDS} s of a relay that is away")
    with stage.relay() as (_, services):
        stage.arrive(services, said, f"{TEXTS} texts once it is back")
        statuses(stage.client, newer, [("update", "active", None)], "once it is back")
        stage.phones.append(newer)
        stage.arrive(services, stage.owe(1, "behind it"), "behind it")


def certificate(stage):
    """A certificate of nobody that the origin trusts is no relay; one that was made anew is."""
    with stage.relay(certificate=stage.folder / "other") as (_, services):
        said = stage.owe(2, "by another authority")
        time.sleep(AWAY_SECONDS)
        services.nothing_more("by another authority")
    renew(stage.folder / "one")
    with stage.relay() as (_, services):
        stage.arrive(services, said, "with a renewed certificate")


def renew(folder):
    """Another key and certificate of the same authority."""
    for words in ("req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout leaf.key -out leaf.csr "
                  "-subj /CN=localhost", "x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
                  "-extfile leaf.ext -out leaf.pem"):
        subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True)


def realm(folder):
    """A second realm, of which the relay is told by the next look of a minute, once it is there again."""
    need_modules("nacl", "requests")
    place, port = folder / "of", free_port()
    place.mkdir()
    origin = Origin(place, f"http://127.0.0.1:{port}")
    url = origin.url.replace("127.0.0.1", "localhost")
    with contextlib.ExitStack() as at_end:
        with plain_relay(folder, f"listeners.public.bind=127.0.0.1:{port}"):
            at_end.enter_context(origin.runs())
            origin.operator("sign-up")
            origin.operator("realm", "add", "chat")
        (folder / "state" / "run.json").unlink(missing_ok=True)
        expect(json.loads(origin.operator("realm", "add", "two", "--url", url))["relay"], "unreachable", "a realm")
        key = json.loads(origin.operator("user", "add", USER, "--realm", "two"))["key"]
        with plain_relay(folder, f"listeners.public.bind=127.0.0.1:{port}") as served:
            client, phone, begun = Client(url, key), ZapPhone("fcm"), time.monotonic()
            client("POST", "mobile_push/register", **phone.fields(served["public_keys"]["zulip-main"][0]))
            while client.fetch()[1]["push_account_ids"][str(phone.account_id)]["status"] == "pending":
                if time.monotonic() > begun + TOLD_SECONDS:
                    raise Failed(f"the relay is not told within {TOLD_SECONDS} s")
                time.sleep(1)
            client.session.close()
    return None, f"a phone of it is active {time.monotonic() - begun:.0f} s behind the relay's return"


SUCCESS = {"result": "success", "msg": ""}
# Of a notification to one phone: an answer that is cut short, and such as say nothing of it.
WRONG = [(200, {"cut": True}, {**SUCCESS, "apple_successfully_sent_count": 1}), (200, {}, NOT_HERE), (500, {}, SUCCESS),
         (200, {}, SUCCESS), (404, {}, NOT_HERE), (413, {}, NOT_HERE)]


def late(bouncer, origin, key):
    """Answers that come when nobody waits any more, that are wrong once, and that are about what is no more."""
    client, first = Client(origin.url, key), ZapPhone("fcm")
    become_active(client, first, bouncer.public_key)
    older_token(bouncer, client)
    wrong_once(bouncer, origin)
    older_row(bouncer, origin, client, first)
    # Both kinds of calls at once, each heard of by the relay long before its answer comes.
    slow, begun = ZapPhone("fcm"), (len(bouncer.registrations), len(bouncer.notified_at), len(bouncer.notified))
    bouncer.script = [(200, {"late": LATE_SECONDS}, {**SUCCESS, "device_id": 5})]
    bouncer.notify_script = [(200, {"late": LATE_SECONDS}, {
        **SUCCESS, "apple_successfully_sent_count": 0, "android_successfully_sent_count": 1, "delete_device_ids": []})]
    client("POST", "mobile_push/register", **slow.fields(bouncer.public_key))
    origin.operator("notify", USER, "slowly")
    bouncer.until(lambda: len(bouncer.registrations) > begun[0] + 1, "a registration that was answered late")
    bouncer.until(lambda: len(bouncer.notified_at) > begun[1] + 1, "a notification that was answered late")
    statuses(client, slow, [("add", "pending", None), ("update", "active", None)], "a late answer")
    expect(len(bouncer.registrations) - begun[0], 2, "registrations")
    time.sleep(LATE_SECONDS - 28)
    expect((len(bouncer.registrations) - begun[0], len(bouncer.notified_at) - begun[1],
            len(bouncer.notified) - begun[2]), (2, 2, 1), "calls, once the late answers have come")
    client.quiet("late answers")
    return client.calls


def older_token(bouncer, client):
    """The answer to a registration that its phone has replaced meanwhile is no answer to the newer one."""
    for answer in ((200, {"late": 2}, {**SUCCESS, "device_id": 12345}),
                   (400, {"late": 2}, {"result": "error", "msg": "", "code": "INVALID_BOUNCER_PUBLIC_KEY"})):
        phone = ZapPhone("fcm")
        bouncer.script, begun = [answer], len(bouncer.registrations)
        client("POST", "mobile_push/register", **phone.fields(bouncer.public_key))
        statuses(client, phone, [("add", "pending", None)], "a record")
        bouncer.until(lambda begun=begun: len(bouncer.registrations) > begun, "the older token")
        phone.token = ZapPhone("fcm").token
        client("POST", "mobile_push/register", **phone.fields(bouncer.public_key))
        statuses(client, phone, [("update", "active", None)], f"a newer token, {answer[0]} for the older one")
        time.sleep(3)
        client.quiet(f"{answer[0]} for an older token")
        client("POST", "mobile_push/forget", push_account_id=str(phone.account_id))
        statuses(client, phone, [("remove", None, None)], "forgotten")


def wrong_once(bouncer, origin):
    for answer in WRONG:
        begun = len(bouncer.notified), len(bouncer.notified_at)
        bouncer.notify_script = [answer]
        origin.operator("notify", USER, "once more")
        bouncer.until(lambda begun=begun: len(bouncer.notified) > begun[0], f"a notification behind {answer[0]}")
        expect((len(bouncer.notified) - begun[0], len(bouncer.notified_at) - begun[1]), (1, 2),
               f"items and calls behind {answer}")


def older_row(bouncer, origin, client, phone):
    """What is said to be dead is the row that a call named, not the one that its phone has now."""
    [old] = [each for key, each in bouncer.rows.items() if key[1] == str(phone.account_id)]
    bouncer.notify_script = [(200, {"late": 3}, {
        **SUCCESS, "apple_successfully_sent_count": 0, "android_successfully_sent_count": 0,
        "delete_device_ids": [old]})]
    begun = len(bouncer.notified_at)
    origin.operator("notify", USER, "to the older token")
    bouncer.until(lambda: len(bouncer.notified_at) > begun, "a notification")
    phone.token, registered = ZapPhone("fcm").token, len(bouncer.registrations)
    client("POST", "mobile_push/register", **phone.fields(bouncer.public_key))
    bouncer.until(lambda: len(bouncer.registrations) > registered, "the newer token")
    time.sleep(4)
    client.quiet("a dead row that is no more")
    begun = len(bouncer.notified)
    origin.operator("notify", USER, "to the newer token")
    bouncer.until(lambda: len(bouncer.notified) > begun, "a notification")
    expect(bouncer.notified[-1]["device_id"] == old, False, "the newer row")


ROWS = [("Our origin's relay restarts", restarts), ("A realm added while our origin's relay is away", realm),
        ("Python as late relay of our origin", foreign(late))]
