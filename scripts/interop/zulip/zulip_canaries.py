"""A row that looks for what our idle origin must not hold any more: in its memory, its log and its files, byte for
byte, after a foreign phone has registered and was notified.
"""
import base64
import json
import os
import pathlib
import re
import secrets
import time

import requests

from tools import SEALBELL, Failed, NotRunnable, expect, free_port, relay, running
from .zulip_clients import USER, Stage, ZapPhone, become_active

IDLE_SECONDS = 30


def memory(pid):
    """Every readable part of a process's memory."""
    with open(f"/proc/{pid}/mem", "rb", 0) as image:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            low, high, rights, name = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)", line).groups()
            # What a library's file holds is nobody's secret.
            if "r" not in rights or "w" not in rights or name in ("[vvar]", "[vsyscall]"):
                continue
            image.seek(int(low, 16))
            try:
                yield image.read(int(high, 16) - int(low, 16))
            except OSError:
                continue


def found(pid, words):
    return sorted({name for part in memory(pid) for name, word in words.items() if word in part})


def idle(folder):
    if os.geteuid() != 0:
        raise NotRunnable("another process's memory is root's to read")
    token, state = "application-token-" + secrets.token_hex(8), folder / "state"
    file = folder / "token"
    file.write_text(token)
    file.chmod(0o600)
    with relay(folder) as run:
        port, place = free_port(), state / "origin"
        command = [SEALBELL, "origin", "--at", str(state)]
        for setting in (f"listeners.origin.bind=127.0.0.1:{port}", "listeners.admin.bind=127.0.0.1:0",
                        f"origin.url=http://127.0.0.1:{port}", f"origin.application_token_file={file}"):
            command += ["--set", setting]
        log = folder / "origin.log"
        with running(command, folder, lambda: "device zulip join" in log.read_text(), "origin.log",
                     absent=Failed) as process:
            key = (place / f"{USER.split('@')[0]}.key").read_text().strip()
            stage = Stage(run, f"http://127.0.0.1:{port}", key, place)
            phone = ZapPhone("fcm", secrets.randbits(62))
            become_active(stage.client, phone, stage.bouncer_key)
            text, sender = (f"{word}-{secrets.token_hex(12)}" for word in ("text", "sender"))
            blob = phone.fields(stage.bouncer_key)["encrypted_push_registration"]
            stage.client("POST", "mobile_push/register", **{
                **phone.fields(stage.bouncer_key), "encrypted_push_registration": blob})
            told = requests.post(
                f"http://127.0.0.1:{port}/notify", timeout=10, headers={"Authorization": "Bearer " + token},
                json={"user": USER, "content": {"text": text, "sender": sender}})
            expect(told.status_code, 202, "a notification")
            [delivered] = stage.services.arrived("fcm", 1)
            expect(delivered["isDouble"], False, "its delivery")
            stage.client.session.close()
            words = {
                "text": text, "sender": sender, "API key": key, "Basic": base64.b64encode(f"{USER}:{key}".encode()),
                "application token": token, "device token": phone.token, "sealed registration": blob[:60],
                "its bytes": base64.b64decode(blob)[:48], "content key": bytes(phone.pair)}
            words = {name: word.encode() if isinstance(word, str) else word for name, word in words.items()}
            # Its own key at the relay must be there, or it is no image of this origin.
            own = json.loads((place / "origin-credentials.json").read_text())["zulip_org_key"]
            control = {"its own key": own.encode()}
            ends = time.monotonic() + IDLE_SECONDS
            while found(process.pid, words) and time.monotonic() < ends:
                time.sleep(1)
            expect(found(process.pid, words), [], "what stands in the memory of an idle origin")
            expect(found(process.pid, control), list(control), "a memory that is this origin's")
        places = [log, *(path for path in place.rglob("*") if path.is_file())]
        expect(any(path.stat().st_size > 1_000 for path in places), True, "files to look through")
        for path in places:
            # The user's key, for whoever runs the sandbox.
            if path.name != f"{USER.split('@')[0]}.key":
                said = path.read_bytes()
                expect([name for name, word in words.items() if word in said], [], f"what stands in {path.name}")
    return None, f"{len(words)} canaries in memory, log and {len(places)} files: none"


ROWS = [("The memory of our idle origin", idle)]
