"""Rows in which an app is updated: its next build speaks another profile, perhaps with another device token, over the
same account. No notification arrives twice, and nothing of the former registration is left at the origin.
"""
import secrets

from tools import expect
from .moved import Phone, World
from .zulip_clients import USER, Client

EMPTY = {"push_account_ids": {}, "devices": {}, "push_devices": {}}


def with_same_token(phone):
    phone("join", phone.world.url, "--profile", "zap")


def with_another_token(phone):
    """The system has given another token with the update, and the app says both at its first start."""
    file = phone.world.folder / "token"
    file.write_text(secrets.token_hex(32) if phone.service == "apns" else f"{secrets.token_urlsafe(16)}:"
                    f"APA91b{secrets.token_urlsafe(100)}")
    phone("join", phone.world.url, "--profile", "zap", "--token-file", file)


def token_first(phone):
    phone("token")
    phone.is_active("another token")
    phone("join", phone.world.url, "--profile", "zap")


def anew(phone):
    """The user logs out, and in again with the next build."""
    phone("leave")
    phone.profile = "zap"
    phone.join()


WAYS = (with_same_token, with_another_token, token_first, anew)


def update(world, services, client, phone, former, way):
    """One phone's update; `former` is its profile."""
    what = f"{former}, {way.__name__}"
    phone.join()
    before = phone.is_active(what)
    old = phone.token
    expect(world.notify(f"{what}: before"), {before: "accepted"}, what)
    services.arrived(*at(phone, 1))
    way(phone)
    phone.profile = "zap"
    after = phone.is_active(what)
    expect((after == before, phone.token == old), (False, way is with_same_token), f"{what}: id and token")
    # What has been on its way opens, where the same phone still has its token.
    if way is with_same_token:
        phone.opens(f"{what}: before", what)
    expect(world.registrations(), {after: "active"}, f"{what}: at the origin")
    expect(client.fetch()[1], {**EMPTY, "push_account_ids": {after.split()[1]: {"status": "active"}}}, what)
    expect(world.notify(f"{what}: behind"), {after: "accepted"}, what)
    [delivered] = services.arrived(*at(phone, 1))
    expect(delivered["token"].lower(), phone.token.lower(), f"{what}: to which token")
    services.nothing_more(what)
    phone.opens(f"{what}: behind", what)
    phone("leave")
    expect((world.registrations(), client.fetch()[1], list(world.folder.glob(f"{phone.file.name}*"))),
           ({}, EMPTY, []), f"{what}: what is left")
    expect(world.notify(f"{what}: to nobody"), {}, what)
    services.nothing_more(f"{what}: to nobody")


def at(phone, count):
    return ("production" if phone.service == "apns" else "fcm"), count


def updates(former, profiles, ways):
    def run(folder):
        world = World(folder, origin_settings=(f"origin.profiles={profiles}",))
        with world.living() as services:
            key = (world.origin_state / f"{USER.split('@')[0]}.key").read_text().strip()
            client = Client(world.url, key)
            for number, way in enumerate(ways):
                for kind in ("apns", "fcm"):
                    phone = Phone(world, f"{kind}-{number}", former, kind)
                    update(world, services, client, phone, former, way)
            client.session.close()
        return None, f"{world.calls} commands, {2 * len(ways)} updates to zap: one push each, nothing left"
    return run


ROWS = [(f"Our phones move from {former} to zap", updates(former, profiles, ways))
        for former, profiles, ways in (("v12", "v12,zap,v11", WAYS), ("v11", "v11,zap", WAYS))]
