"""What servers of 12.x do that the protocol's description does not show, each a row of its own: what one of them says
of the relay is not hidden behind another.
"""
import json
import secrets
import time

from .conversation import Talk, message, removal
from tools import Failed, expect, need_modules, relay
from .zulip_peer import Door, Phone, Server

# As zerver/lib/push_notifications.py of 12.x fills it.
SOUND = {"mutable-content": 1, "alert": {"title": "New notification"}, "sound": "default"}
QUIET = {"mutable-content": 1}
TOKENS = ["cB7_x:APA91b-1", "żółw 🔔", ""]


def joined(door, run):
    talk = Talk(door, run)
    talk.sign_up()
    for phone in (talk.iphone, talk.android):
        talk.step(talk.server.register(phone), 200, "register")
    return talk


def sounds(talk):
    """A message rings on the iPhone, and the Android phone of the same call gets its own; a removal is silent."""
    server = talk.server
    talk.sent([server.item(talk.iphone, message(1, "a"), SOUND), server.item(talk.android, message(1, "b"))], 1, 1)
    [apple] = talk.services.arrived("production", 1)
    expect(apple["json"]["aps"], SOUND, "aps of a message")
    talk.services.arrived("fcm", 1)
    talk.sent([server.item(talk.iphone, removal([1]), QUIET)], 1, 0)
    [apple] = talk.services.arrived("production", 1)
    expect(apple["json"]["aps"], QUIET, "aps of a removal")
    odd = {"a": [1, None, {"b": 0.5}], "ż": "\u2028\"\\", "c": {"d": {"e": True}}}
    talk.sent([server.item(talk.iphone, message(2, "c"), odd)], 1, 0)
    [apple] = talk.services.arrived("production", 1)
    expect(apple["json"]["aps"], odd, "an aps of nobody yet")
    return "three calls as 12.x makes them"


def legacy_row(talk):
    """`send_notifications_to_bouncer` and what it asserts of the answer, then the sealed part of the same job."""
    server = talk.server
    asked = {"user_uuid": str(server.id), "user_id": 7, "realm_uuid": server.realm,
             "apns_payload": {"alert": {"title": "Iago", "body": "see you"}, "sound": "default", "badge": 0,
                              "custom": {"zulip": {"event": "message", "time": 1}}},
             "gcm_payload": {"event": "message", "content": "see you"}, "gcm_options": {"priority": "high"},
             "android_devices": TOKENS, "apple_devices": ["AB12"]}
    told = talk.step(talk.door.ask("POST", "push/notify", auth=server.auth, body=json.dumps(asked).encode()), 200,
                     "the legacy path")
    expect((told["total_android_devices"], told["total_apple_devices"]), (0, 0), "totals")
    expect(told["deleted_devices"], {"android_devices": TOKENS, "apple_devices": ["AB12"]}, "what is gone")
    if told.get("realm") is not None:
        expect(told["realm"]["can_push"], True, "the realm")
    talk.sent([server.item(talk.iphone, message(3, "and on"), SOUND)], 1, 0)
    talk.services.arrived("production", 1)
    form = {"server_uuid": server.id, "realm_uuid": server.realm, "user_uuid": str(server.id), "user_id": 7}
    talk.step(talk.door.ask("POST", "push/unregister", auth=server.auth,
                            form={**form, "token": "AB12", "token_kind": 1}), 200, "unregister")
    talk.step(talk.door.ask("POST", "push/unregister/all", auth=server.auth, form=form), 200, "unregister all")
    talk.step(talk.door.ask("POST", "push/register", auth=server.auth, form=form), 400, "legacy register", "BAD_REQUEST")
    stranger = talk.door.ask("POST", "push/notify", auth=(server.id, "x" * 64), body=json.dumps(asked).encode())
    talk.step(stranger, 401, "the legacy path for a stranger", "UNAUTHORIZED")
    return "answered as the server's code wants it"


def rotation(talk):
    """`manage.py register_server --rotate-key`: rotate, upload with the old key, then write the new one down."""
    server, new = talk.server, secrets.token_hex(32)
    talk.step(server.sign_up(new_org_key=new), 200, "a new key")
    talk.step(server.analytics(), 200, "the upload behind it, with the old key")
    old, server.key = server.key, new
    talk.step(server.analytics(), 200, "the first upload with the new key")
    server.key = old
    talk.step(server.analytics(), 401, "the old key from then on", "UNAUTHORIZED")
    return "the command ends as its operator expects"


def slashes(talk):
    """`ZULIP_SERVICES_URL` with a slash behind it."""
    for extra in ("/", "///"):
        answer = talk.door.session.get(talk.door.url + extra + "api/v1/remotes/server/analytics/status",
                                  auth=talk.server.auth, timeout=15)
        talk.step(answer, 200, f"{extra}api")
    return "//api is /api"


def set_up_anew(talk):
    """The same host and realms under a new id, at once; the old id's phones are not reached."""
    old = talk.server
    talk.step(talk.door.ask("POST", "server/deactivate", auth=old.auth, body=b"{}"), 200, "deactivate")
    new = Server(talk.door, talk.bouncer_key, old.host)
    new.realm = old.realm
    talk.server = new
    talk.step(new.sign_up(), 200, "sign-up under the old host name")
    talk.step(new.analytics(), 200, "an upload of the old realms")
    talk.sent([new.item(talk.iphone, message(4, "whose?"))], 0, 0, [talk.iphone.token_id], "an old phone")
    talk.step(new.register(talk.iphone), 200, "the phone registers again")
    talk.sent([new.item(talk.iphone, message(5, "mine"))], 1, 0)
    talk.services.arrived("production", 1)
    return "host name and realms free at once"


def methods(talk):
    """405 as Django sends it."""
    for method, path, allowed in (("GET", "push/e2ee/notify", ["POST"]),
                                  ("POST", "server/analytics/status", ["GET", "HEAD"])):
        answer = talk.door.ask(method, path, auth=talk.server.auth)
        told = talk.step(answer, 405, f"{method} {path}")
        expect(told, {"result": "error", "msg": "Method Not Allowed", "allowed_methods": allowed}, "its body")
        expect(answer.headers.get("Allow"), ", ".join(allowed), "its field")
    return "JSON, methods and field"


def same_second(talk):
    """A token dies, and its phone registers anew before the second is over."""
    phone = Phone("fcm", 7)
    talk.step(talk.server.register(phone), 200, "register")
    # Two seconds may lie around a death that is told at a second's very end; then it is tried again.
    for _ in range(5):
        talk.services.set_device("fcm", phone, "removed")
        begun = int(time.time())
        talk.sent([talk.server.item(phone, message(6, secrets.token_hex(4)))], 0, 0, [phone.token_id], "a dead token")
        if int(time.time()) == begun:
            break
    else:
        raise Failed("no death within one second")
    talk.services.set_device("fcm", phone, "live")
    talk.step(talk.server.register(phone, blob=phone.register(talk.bouncer_key, begun)), 200, "anew")
    talk.sent([talk.server.item(phone, message(7, "alive"))], 0, 1)
    return "lives"


def row(habit):
    def run(folder):
        need_modules("nacl", "requests")
        with relay(folder) as served:
            return None, habit(joined(Door(served["urls"]["public"]), served))
    return run


ROWS = [("12.x: a sound in aps", row(sounds)), ("12.x: a leftover legacy row", row(legacy_row)),
        ("12.x: --rotate-key", row(rotation)), ("12.x: a slash too many", row(slashes)),
        ("12.x: set up anew", row(set_up_anew)), ("12.x: a wrong method", row(methods)),
        ("12.x: dead and back in one second", row(same_second))]
