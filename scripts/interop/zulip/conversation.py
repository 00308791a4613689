"""Rows in which foreign code is device and origin of a real relay: directly, and through the guide's proxies."""
import json
import os
import secrets
import time

from tools import Failed, answers, certificates, expect, free_port, guide_block, need, need_modules, relay, running, \
    version
from .zulip_peer import BUNDLE, Door, Phone, Server, Services, answered, must_not_open, stranger_key

ITEMS = 1000
NAME = "push.acme.example"  # the guide's
# Above what the guide's proxies may let through, and below the relay's own bound of 16 MiB.
LARGE_BYTES = 6 << 20
# One row of an analytics upload, percent-encoded.
ROW_BYTES = 200


def message(number, content):
    return {"type": "message", "realm_url": "https://chat.example.org", "realm_name": "Zażółć 🔔", "user_id": 7,
            "message_id": number, "time": int(time.time()), "content": content, "sender_id": 8,
            "sender_full_name": "Iago", "sender_avatar_url": "https://chat.example.org/a.png",
            "recipient_type": "direct", "recipient_user_ids": [7, 8]}


def removal(numbers):
    return {"type": "remove", "realm_url": "https://chat.example.org", "realm_name": "Zażółć 🔔", "user_id": 7,
            "message_ids": numbers}


class Talk:
    """One whole conversation; counts its steps."""

    def __init__(self, door, run):
        self.bouncer_key = run["public_keys"]["zulip-main"][0]
        self.services = Services(run["urls"]["sandbox-control"])
        self.door = door
        self.server = Server(door, self.bouncer_key, f"chat-{secrets.token_hex(4)}.example.org")
        self.iphone, self.android = Phone("apns", 7), Phone("fcm", 7)
        self.steps = 0

    def step(self, answer, status, what, code=None):
        self.steps += 1
        return answered(answer, status, what, code)

    def sent(self, items, apple, android, dead=(), what="notify"):
        told = self.step(self.server.notify(items), 200, what)
        expect((told["apple_successfully_sent_count"], told["android_successfully_sent_count"],
                sorted(told["delete_token_ids"])), (apple, android, sorted(dead)), what)
        expect(told["realm_push_status"], {"can_push": True, "expected_end_timestamp": None}, what)

    def whole(self):
        self.sign_up()
        self.pass_on()
        self.remove()
        self.refusals()
        self.death_and_return()
        self.many()
        self.leave()
        return f"{self.steps} calls as described, sealed and opened by PyNaCl"

    def sign_up(self):
        server = self.server
        expect(self.step(server.sign_up(), 200, "sign-up")["created"], True, "sign-up")
        expect(self.step(server.sign_up(), 200, "sign-up again")["created"], False, "sign-up again")
        self.step(server.sign_up(zulip_org_key=secrets.token_hex(32)), 400, "a wrong key", "INVALID_ZULIP_SERVER")
        self.step(Server(self.door, "", server.host).sign_up(), 400, "a host name that is taken")
        self.step(server.register(self.iphone), 403, "before analytics", "MISSING_REMOTE_REALM")
        status = self.step(self.door.ask("GET", "server/analytics/status", auth=server.auth), 200, "status")
        expect({name: status[name] for name in ("last_realm_count_id", "last_installation_count_id",
                                                "last_realmauditlog_id")},
               {"last_realm_count_id": 0, "last_installation_count_id": 0, "last_realmauditlog_id": 0}, "status")
        told = self.step(server.analytics(), 200, "analytics")
        expect(told["realms"], {server.realm: {"can_push": True, "expected_end_timestamp": None}}, "analytics")

    def pass_on(self):
        """A message goes to both phones, and each opens its own."""
        for phone in (self.iphone, self.android):
            self.step(self.server.register(phone), 200, "register")
            self.step(self.server.register(phone), 200, "register again")
        said = message(5, "see you at nine: żółw 🔔 日本")
        self.sent([self.server.item(self.iphone, said), self.server.item(self.android, said)], 1, 1)
        [apple] = self.services.arrived("production", 1)
        [google] = self.services.arrived("fcm", 1)
        expect((apple["token"], apple["topic"], apple["pushType"], apple["priority"], apple["expirationSeconds"],
                apple["collapseID"]), (self.iphone.token.lower(), BUNDLE, "alert", 10, None, None), "at Apple")
        expect(apple["json"].keys(), {"push_key_id", "encrypted_data", "aps"}, "Apple's body")
        expect(apple["json"]["push_key_id"], self.iphone.key_id, "Apple's body")
        expect(apple["json"]["aps"], {"mutable-content": 1, "alert": {"title": "New notification"}}, "default aps")
        expect(self.iphone.open(apple["json"]["encrypted_data"]), said, "what the iPhone opened")
        must_not_open(self.android, apple["json"]["encrypted_data"])
        expect((google["token"], google["priority"]), (self.android.token, 10), "at Google")
        inner = google["json"]["message"]
        expect(google["json"].keys() | inner.keys(), {"message", "token", "android", "data"}, "Google's body")
        expect(inner["android"], {"priority": "high"}, "Google's body")
        expect(inner["data"].keys(), {"push_key_id", "encrypted_data"}, "Google's data")
        expect(inner["data"]["push_key_id"], str(self.android.key_id), "Google's data")
        expect(self.android.open(inner["data"]["encrypted_data"]), said, "what the Android phone opened")

    def remove(self):
        gone = removal([5, 6])
        aps = {"content-available": 1}
        self.sent([self.server.item(self.iphone, gone, aps), self.server.item(self.android, gone)], 1, 1)
        [apple] = self.services.arrived("production", 1)
        [google] = self.services.arrived("fcm", 1)
        expect((apple["pushType"], apple["priority"], google["priority"]), ("background", 5, 5), "a removal")
        expect(apple["json"]["aps"], aps, "an aps of the server's own")
        expect(self.iphone.open(apple["json"]["encrypted_data"]), gone, "what the iPhone opened")

    def refusals(self):
        """What is wrong is told by its code, and nothing is sent."""
        server, phone = self.server, Phone("apns", 7)
        refused = [
            (server.register(phone, realm_uuid=str(server.id)), 403, "a realm of nobody", "MISSING_REMOTE_REALM"),
            (server.register(phone, realm_uuid="no-uuid"), 400, "a realm that is no UUID", "BAD_REQUEST"),
            (server.register(phone, bouncer_public_key=stranger_key()), 400, "another relay's key",
             "INVALID_BOUNCER_PUBLIC_KEY"),
            (server.register(phone, blob=phone.register(stranger_key())), 400, "a box for another", "BAD_REQUEST"),
            (server.register(phone, blob="A"), 400, "no base64", "BAD_REQUEST"),
            (server.register(phone, blob=phone.register(self.bouncer_key, int(time.time()) - 86_500)), 400,
             "a box of yesterday", "REQUEST_EXPIRED"),
            (server.register(phone, token_id=self.iphone.token_id), 400, "another token's id", "BAD_REQUEST"),
            (server.register(phone, blob=phone.register(self.bouncer_key, ios_app_id=None)), 400, "no app id",
             "BAD_REQUEST"),
        ]
        mixed = server.item(self.iphone, message(6, "x"))
        del mixed["http_headers"]
        mixed["fcm_priority"] = "high"
        broken = server.item(self.iphone, message(6, "x"))
        broken["http_headers"]["apns_priority"] = 11
        good = server.item(self.iphone, message(6, "x"))
        refused += [
            (server.notify([mixed]), 400, "an item of the other kind", "BAD_REQUEST"),
            (server.notify([good, broken]), 400, "one malformed item", "BAD_REQUEST"),
            (server.notify([good], realm=server.id), 403, "a realm of nobody", "MISSING_REMOTE_REALM"),
            (self.door.ask("POST", "push/register", auth=server.auth, form={"token": "x"}), 400, "the legacy path",
             "BAD_REQUEST"),
            (self.door.ask("POST", "push/e2ee/notify", body=b"{}"), 401, "no credentials", "UNAUTHORIZED"),
            (self.door.ask("POST", "push/e2ee/notify", auth=(server.id, "x" * 64), body=b"{}"), 401, "a wrong key",
             "UNAUTHORIZED"),
            (self.door.ask("GET", "push/e2ee/notify", auth=server.auth), 405, "another method", None),
        ]
        for row in refused:
            told = self.step(*row)
            if row[1] == 401 and row[0].headers.get("WWW-Authenticate") != 'Basic realm="zulip"':
                raise Failed(f"{row[2]}: no WWW-Authenticate")
            if row[1] == 405:
                expect(told["allowed_methods"], ["POST"], row[2])
        variable = self.step(self.door.ask("POST", "push/e2ee/register", auth=server.auth,
                                           form={"realm_uuid": server.realm}), 400, "a parameter too few",
                             "REQUEST_VARIABLE_MISSING")
        if variable["var_name"] not in {"token_id", "encrypted_push_registration", "bouncer_public_key"}:
            raise Failed(f"var_name is {variable['var_name']!r}")
        stranger = Phone("fcm", 7)
        self.sent([server.item(stranger, message(7, "x"))], 0, 0, [stranger.token_id], "an unknown id")

    def death_and_return(self):
        """A dead token is told of once and again, until its phone registers anew."""
        for name, phone in (("production", self.iphone), ("fcm", self.android)):
            self.services.set_device(name, phone, "expired" if name == "production" else "removed")
            item = self.server.item(phone, message(8, "to the dead"))
            self.sent([item], 0, 0, [phone.token_id], f"a dead token at {name}")
            self.sent([self.server.item(phone, message(9, "again"))], 0, 0, [phone.token_id], "dead still")
            self.services.set_device(name, phone, "live")
            later = phone.register(self.bouncer_key, int(time.time()) + 2)
            self.step(self.server.register(phone, blob=later), 200, "a newer registration")
            said = message(10, "back again")
            apple = phone.kind == "apns"
            self.sent([self.server.item(phone, said)], int(apple), int(not apple), what="after the return")
            [found] = self.services.arrived(name, 1)
            body = found["json"] if apple else found["json"]["message"]["data"]
            expect(phone.open(body["encrypted_data"]), said, "what came after the return")

    def many(self):
        """As many items as a call may have, and one more."""
        items = [self.server.item(self.iphone, message(1000 + number, "x" * 200)) for number in range(ITEMS)]
        self.sent(items, ITEMS, 0, what=f"{ITEMS} items")
        found = self.services.arrived("production", ITEMS)
        opened = {self.iphone.open(each["json"]["encrypted_data"])["message_id"] for each in found}
        expect(opened, set(range(1000, 1000 + ITEMS)), "the messages of one call")
        self.step(self.server.notify(items + items[:1]), 400, "an item too many")
        rows = range(1, LARGE_BYTES // ROW_BYTES)
        large = self.step(self.server.analytics(rows), 200, "an analytics upload of 6 MiB")
        expect(list(large["realms"]), [self.server.realm], "its answer")
        status = self.step(self.door.ask("GET", "server/analytics/status", auth=self.server.auth), 200, "status")
        expect(status["last_realm_count_id"], rows[-1], "the last id")

    def leave(self):
        server = self.server
        old, new = server.key, secrets.token_hex(32)
        self.step(server.sign_up(new_org_key=new), 200, "a new key")
        self.step(server.notify([]), 200, "the old key until the new one is used")
        server.key = new
        self.step(server.notify([]), 200, "the new key")
        server.key = old
        self.step(server.notify([]), 401, "the old key", "UNAUTHORIZED")
        server.key = new
        self.step(self.door.ask("POST", "server/deactivate", auth=server.auth, body=b"{}"), 200, "deactivate")
        self.step(server.notify([]), 401, "after deactivation", "UNAUTHORIZED")
        expect(old != new, True, "two keys")


def direct(folder):
    need_modules("nacl", "requests")
    with relay(folder) as run:
        note = Talk(Door(run["urls"]["public"]), run).whole()
        return None, note


def port_of(url):
    return url.rsplit(":", 1)[1]


def nginx(folder):
    need("nginx", "openssl")
    need_modules("nacl", "requests")
    certificates(folder, NAME)
    with relay(folder, "listeners.public.trusted_proxies=127.0.0.1") as run:
        port = free_port()
        live = f"/etc/letsencrypt/live/{NAME}"
        block = guide_block(
            "nginx", ("listen 443 ", f"listen 127.0.0.1:{port} "), ("127.0.0.1:8480", "127.0.0.1:" + port_of(
                run["urls"]["public"])), (f"{live}/fullchain.pem", "leaf.pem"), (f"{live}/privkey.pem", "leaf.key"),
            ("/var/log/nginx/error.log", "error.log"), guide="zulip")
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "".join(f"{kind}_temp_path {kind};\n" for kind in kinds)
        # The worker must be able to write beside the configuration, as Debian's can below /var/lib/nginx.
        user = "user root;\n" if os.geteuid() == 0 else ""
        (folder / "nginx.conf").write_text(
            f"{user}daemon off;\npid nginx.pid;\nworker_processes 1;\nevents {{}}\nhttp {{\n{temporary}{block}}}\n")
        command = ["nginx", "-p", str(folder), "-e", "error.log", "-c", str(folder / "nginx.conf")]
        with running(command, folder, answers(port), absent=Failed):
            note = Talk(Door(f"https://127.0.0.1:{port}", NAME, folder / "ca.pem"), run).whole()
            beyond(folder, port)
    return "nginx " + version(["nginx", "-v"], r"nginx/(\S+)") + " as the guide's proxy", note


def caddy(folder):
    need("caddy", "openssl")
    need_modules("nacl", "requests")
    certificates(folder, NAME)
    with relay(folder, "listeners.public.trusted_proxies=127.0.0.1") as run:
        port = free_port()
        block = guide_block(
            "caddy", (f"{NAME} {{\n", f"{NAME}:{port} {{\n    tls leaf.pem leaf.key\n    bind 127.0.0.1\n"),
            ("127.0.0.1:8480", "127.0.0.1:" + port_of(run["urls"]["public"])), guide="zulip")
        # No port 80, no certificates of its own, no administration: three things that the test machine lacks.
        (folder / "Caddyfile").write_text("{\n    admin off\n    auto_https disable_redirects\n}\n" + block)
        command = ["caddy", "run", "--config", "Caddyfile", "--adapter", "caddyfile"]
        home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        with running(command, folder, answers(port), "caddy.log", home, absent=Failed):
            note = Talk(Door(f"https://127.0.0.1:{port}", NAME, folder / "ca.pem"), run).whole()
            beyond(folder, port)
    return "Caddy " + version(["caddy", "version"], r"v?(\d\S+)") + " as the guide's proxy", note


def beyond(folder, port):
    """What lies outside the protocol's paths is not shown to the world."""
    door = Door(f"https://127.0.0.1:{port}", NAME, folder / "ca.pem")
    for path in ("../../../metrics", "../../../health/ready", "../../../"):
        answer = door.session.get(f"https://127.0.0.1:{port}/" + path.replace("../", ""), headers={"Host": NAME},
                                  timeout=15)
        expect(answer.status_code, 404, f"/{path.replace('../', '')} through the proxy")


ROWS = [("Python as device and origin", direct), ("nginx as the guide's proxy", nginx),
        ("Caddy as the guide's proxy", caddy)]
