"""A row in which what people report of servers like our origin, and of their push, is done to ours: docs/conformance/
zulip.md has the list.
"""
import contextlib
import json
import time

import requests

from tools import Failed, expect, free_port, need_modules, relay
from .zulip_addresses import AGENT, CloudPhone
from .zulip_bouncer import Origin, statuses
from .zulip_clients import USER, Client, ZapPhone, become_active
from .zulip_peer import Services, answered


class Reported:
    def __init__(self, folder, served, origin):
        self.folder, self.origin = folder, origin
        self.serve(served)

    def serve(self, served):
        """Another relay serves from now on."""
        self.public = served["urls"]["public"]
        self.key = served["public_keys"]["zulip-main"][0]
        self.services = Services(served["urls"]["sandbox-control"])

    def join(self, cloud):
        cloud.at_proxy(requests.Session(), self.public + "/nextcloud-main", headers=AGENT)

    def tell(self, *words):
        return json.loads(self.origin.operator(*words))

    def woken(self, devices, tokens, what):
        """A text to the user: for how many devices it is owed, and whose tokens got it."""
        told = self.tell("notify", USER, what)
        expect(told["devices"], devices, f"{what}: devices")
        found = [each["token"] for each in self.services.arrived("fcm", len(tokens))]
        expect(sorted(found), sorted(tokens), f"{what}: who was woken")
        self.services.nothing_more(what)
        return told["id"]


    def client(self, key):
        return Client(self.origin.url, key)

    def forget(self, client, phone):
        client("POST", "mobile_push/forget", push_account_id=str(phone.account_id))
        statuses(client, phone, [("remove", None, None)], "forgotten")


def set_up(reported):
    """Phones that came before the server was signed up, and a sign-up that is made again (docker-zulip#340,
    zulip#32418).
    """
    reported.tell("realm", "add", "chat")
    client, phone = reported.client(reported.tell("user", "add", USER)["key"]), ZapPhone("fcm")
    answered(client.ask("POST", "mobile_push/register", **phone.fields(reported.key)), 400, "before the sign-up")
    client.quiet("before the sign-up")
    for _ in range(2):
        reported.origin.operator("sign-up")
    become_active(client, phone, reported.key)
    reported.woken(1, [phone.token], "behind the sign-up")
    return client, phone


def one_token_twice(reported, client, phone):
    """An app that was installed anew, whose old record nobody has forgotten yet (zulip-flutter#2302): two pushes, until
    it is forgotten; and a removal behind it goes to the new one.
    """
    anew = ZapPhone("fcm")
    anew.token = phone.token
    become_active(client, anew, reported.key)
    reported.woken(2, [phone.token] * 2, "one token twice")
    reported.forget(client, phone)
    name = reported.woken(1, [anew.token], "one token once")
    expect(reported.tell("withdraw", USER, name)["devices"], 1, "a removal")
    expect([each["token"] for each in reported.services.arrived("fcm", 1)], [anew.token], "a removal")
    return anew


def set_up_anew(reported, client):
    """The organization is reset: another realm under the old name, the same phones (zulip#28215)."""
    client.session.close()
    reported.origin.fails("realm", "remove", "chat")
    for words in (("user", "remove", USER), ("realm", "remove", "chat"), ("realm", "add", "chat")):
        reported.origin.operator(*words)
    client, phone = reported.client(reported.tell("user", "add", USER)["key"]), ZapPhone("fcm")
    become_active(client, phone, reported.key)
    reported.woken(1, [phone.token], "a realm that was made anew")
    return client, phone


def credentials_lost(reported, client, phone):
    """Id and key are gone (zulip#28925): nobody gets the name by asking, and the relay's operator frees it."""
    file = reported.folder / "of" / "origin-credentials.json"
    file.unlink()
    expect("sign-up --transfer" in reported.origin.fails("sign-up"), True, "a name that is taken")
    host = reported.origin.url.split("//")[1].split(":")[0]
    reported.origin.command("forget", "origin", host, "--yes", "--at", str(reported.folder / "state"))
    reported.origin.operator("sign-up")
    gone(reported, client, phone)


def gone(reported, client, phone):
    """The relay knows its phones no more: the next text tells, and their apps register again."""
    expect(reported.tell("notify", USER, "to nobody")["devices"], 1, "devices")
    statuses(client, phone, [("remove", None, None)], "a phone that the relay does not know")
    become_active(client, phone, reported.key)
    reported.woken(1, [phone.token], "a phone that has come again")


def database_lost(reported, client, phone, cloud):
    """The relay has lost its database, and has its keys yet (nextcloud/notifications#2586): servers sign up again
    under the same id, and what the relay does not know, it says.
    """
    reported.origin.operator("sign-up")
    expect(reported.tell("notify", USER, "to nobody")["devices"], 2, "devices")
    statuses(client, phone, [("remove", None, None)], "a phone that the relay does not know")
    become_active(client, phone, reported.key)
    ends = time.monotonic() + 15
    while reported.tell("notify", USER, "to one")["devices"] != 1:
        reported.services.arrived("fcm", 1)
        if time.monotonic() > ends:
            raise Failed("the proxy does not know a phone, and it stays")
    reported.services.arrived("fcm", 1)
    cloud.register()
    reported.join(cloud)
    reported.woken(2, [phone.token, cloud.token], "all have come again")


def row(folder):
    need_modules("nacl", "requests", "cryptography")
    place = folder / "of"
    place.mkdir()
    port = free_port()
    settings = f"listeners.public.bind=127.0.0.1:{port}"
    origin = Origin(place, f"http://127.0.0.1:{port}", None, "  nextcloud: { allow_local_proxies: true }\n")
    with contextlib.ExitStack() as at_end:
        with relay(folder, settings) as served:
            at_end.enter_context(origin.runs())
            reported = Reported(folder, served, origin)
            client, phone = set_up(reported)
            one_token_twice(reported, client, phone)
            client, phone = set_up_anew(reported, client)
            credentials_lost(reported, client, phone)
            cloud = CloudPhone(origin, f"http://localhost:{port}/nextcloud-main")
            reported.join(cloud)
            reported.woken(2, [phone.token, cloud.token], "both kinds")
        for file in (folder / "state").glob("relay.sqlite*"):
            file.unlink()
        (folder / "state" / "run.json").unlink(missing_ok=True)
        with relay(folder, settings) as served:
            reported.serve(served)
            database_lost(reported, client, phone, cloud)
            client.session.close()
    return None, "sign-up again, a token twice, a reset, credentials and a database lost"


ROWS = [("Reports of servers like our origin", row)]
