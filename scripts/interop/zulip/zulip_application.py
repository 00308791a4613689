"""A row in which foreign code is an application that notifies people by our origin, well and badly. Written from the
protocol's description and the page for those who run an origin.
"""
import concurrent.futures
import pathlib
import re
import secrets
import time

import requests

from tools import Failed, expect, need_modules
from .zulip_clients import EVENTS_SECONDS, USER, Stage, ZapPhone, become_active, one_process

# What POST /notify takes: 4,096 bytes of text, keys of 128, bodies of 16 KiB.
TEXT_BYTES, KEY_BYTES, BODY_BYTES = 4_096, 128, 16 << 10


class Application:
    def __init__(self, url, token):
        self.url, self.calls = url, 0
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers["Authorization"] = "Bearer " + token

    def ask(self, method, path, status, what, body=None, raw=None, **headers):
        self.calls += 1
        answer = self.session.request(method, self.url + path, json=body, data=raw, headers=headers, timeout=15)
        if answer.status_code != status:
            raise Failed(f"{what}: {answer.status_code} instead of {status}: {answer.text[:200]}")
        try:
            told = answer.json()
        except ValueError as odd:
            raise Failed(f"{what}: {answer.text[:200]!r} is no JSON") from odd
        expect("error" in told, status >= 400, what)
        return told

    def notify(self, status, what, **body):
        return self.ask("POST", "/notify", status, what, body)

    def becomes(self, name, state, what):
        ends = time.monotonic() + EVENTS_SECONDS
        while True:
            told = self.ask("GET", "/notify/" + name, 200, what)["devices"]
            if {each["state"] for each in told} == {state}:
                return [each["device"] for each in told]
            if time.monotonic() > ends:
                raise Failed(f"{what}: {told} after {EVENTS_SECONDS} s")
            time.sleep(0.1)


def talk(stage, application, phones):
    services, user = stage.services, USER
    told = application.notify(202, "a text", user=user, content="żółw 🔔")
    expect((re.fullmatch("[0-9a-f]{32}", told["id"]) is not None, told["devices"]), (True, 2), "a text")
    for content in stage.opened(phones, "a text"):
        expect(content["content"], "żółw 🔔", "a text")
    expect(sorted(application.becomes(told["id"], "accepted", "a text")),
           sorted(f"account {phone.account_id}" for phone in phones), "a text's devices")
    told = application.notify(202, "a sender", user=user, content={"text": "x", "sender": "Kitchen"})
    for content in stage.opened(phones, "a sender"):
        expect((content["content"], content["sender_full_name"]), ("x", "Kitchen"), "a sender")
        number = content["message_id"]
    repeats(stage, application, phones)
    refusals(application, told["id"])
    services.nothing_more("refusals and repeats")
    withdrawal = application.notify(202, "a removal", user=user, withdraw=[told["id"]])
    expect(withdrawal["devices"], 2, "a removal")
    for content in stage.opened(phones, "a removal", False, {"content-available": 1}):
        expect((content["type"], content["message_ids"]), ("remove", [number]), "a removal")


def repeats(stage, application, phones):
    """Of one key there is one notification, however often and however many at once ask for it."""
    key = "dinner-" + secrets.token_hex(4)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: application.notify(202, "a key", user=USER, content="dinner", key=key),
                             range(16)))
    expect(told, told[:1] * 16, "answers to one key")
    stage.opened(phones, "a key")
    again = application.notify(202, "a key with another text", user=USER, content="supper", key=key)
    expect(again, told[0], "a key with another text")
    stage.services.nothing_more("one key")
    other = application.notify(202, "another key", user=USER, content="dinner", key="x" * KEY_BYTES)
    expect(other["id"] == told[0]["id"], False, "another key")
    stage.opened(phones, "another key")


def refusals(application, known):
    """One clear error each; nothing is owed."""
    for body, status in (
            ({"content": "x"}, 400), ({"user": USER}, 400), ({"user": 5, "content": "x"}, 400),
            ({"user": None, "content": "x"}, 400), ({"user": USER, "content": 5}, 400),
            ({"user": USER, "content": ""}, 400), ({"user": USER, "content": ["x"]}, 400),
            ({"user": USER, "content": {"sender": "x"}}, 400), ({"user": USER, "content": "x" * (TEXT_BYTES + 1)}, 400),
            ({"user": USER, "content": {"text": "x", "sender": "y" * 257}}, 400),
            ({"user": USER, "content": "x", "withdraw": [known]}, 400), ({"user": USER, "withdraw": []}, 400),
            ({"user": USER, "withdraw": [known] * 201}, 400), ({"user": USER, "withdraw": known}, 400),
            ({"user": USER, "withdraw": [known, 5]}, 400), ({"user": USER, "withdraw": [known[:-1]]}, 400),
            ({"user": USER, "withdraw": ["g" * 32]}, 400), ({"user": USER, "content": "x", "key": ""}, 400),
            ({"user": USER, "content": "x", "key": "k" * (KEY_BYTES + 1)}, 400),
            ({"user": USER, "content": "x", "key": 5}, 400), ({"user": "nobody@example.com", "content": "x"}, 404),
            ({"user": USER + "\0", "content": "x"}, 404), ({"user": "a" * 10_000, "content": "x"}, 404)):
        application.notify(status, f"the call {str(body)[:90]}", **body)
    for raw, status in ((b"", 400), (b"[]", 400), (b'{"user":"a"}x', 400), (b'{"user":"\xff","content":"x"}', 400),
                        (b"user=a&content=x", 400), (b" " * (BODY_BYTES + 1), 413)):
        application.ask("POST", "/notify", status, f"the body {raw[:40]!r}", raw=raw)
    for method, path, status in (("GET", "/notify", 405), ("DELETE", "/notify/" + known, 405),
                                 ("GET", "/notify/" + "0" * 32, 404), ("GET", "/notify/", 404),
                                 ("GET", "/notify/" + known.upper() + "x", 404)):
        application.ask(method, path, status, f"{method} {path[:50]}")
    for field in ("", "Bearer ", "Bearer x", "Basic x", application.session.headers["Authorization"] + "x",
                  application.session.headers["Authorization"][:-1]):
        for method, path, body in (("POST", "/notify", {"user": USER, "content": "x"}),
                                   ("GET", "/notify/" + known, None)):
            application.ask(method, path, 401, f"the credentials {field[:8]!r}", body, Authorization=field)


def row(folder):
    need_modules("nacl", "requests")
    folder, token = pathlib.Path(folder), secrets.token_urlsafe(24)
    file = folder / "application.token"
    file.write_text(token + "\n")
    file.chmod(0o600)
    with one_process(folder, f"origin.application_token_file={file}") as (served, url, key, place):
        stage, application = Stage(served, url, key, place), Application(url, token)
        phones = [ZapPhone("apns"), ZapPhone("fcm")]
        for phone in phones:
            become_active(stage.client, phone, stage.bouncer_key)
        with stage.scene("an application"):
            talk(stage, application, phones)
        return None, f"{application.calls} calls, of which each good one is opened"


ROWS = [("Python as application at our origin", row)]
