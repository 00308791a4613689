"""Rows in which PyNaCl seals what we open, and opens what we seal."""
import base64
import json
import pathlib
import re
import secrets
import shutil
import subprocess
import sys

from tools import ROOT, Failed, NotRunnable, expect, need_modules, swift_test

HERE = pathlib.Path(__file__).resolve().parent


def vectors(folder, generator="vectors_zulip.py"):
    need_modules("nacl", "cryptography")
    seed = secrets.token_hex(8)
    made = subprocess.run([sys.executable, str(HERE / generator), "--seed", seed, "--set", "interop", "--out",
                           str(folder / "zulip.json")], capture_output=True, text=True)
    if made.returncode:
        raise NotRunnable("the generator failed: " + made.stderr.strip()[-200:])
    # Our tests open what PyNaCl sealed, and seal again to compare byte for byte.
    status, text = swift_test("VectorTests", {"SEALBELL_VECTORS": str(folder)})
    rows = {name: (int(passed), int(total)) for name, passed, total in
            re.findall(r"vectors zulip/interop (\S+) (\d+)/(\d+)", text)}
    if status or any(passed != total for passed, total in rows.values()):
        keep = ROOT / ".build" / f"interop-{seed}.json"
        shutil.copy(folder / "zulip.json", keep)
        raise Failed(f"seed {seed}, kept as .build/{keep.name}; " + text.strip().splitlines()[-1])
    for name in ("sealed_box", "encrypted_data", "mutations", "bouncer_register", "bouncer_notify"):
        if name not in rows:
            raise Failed(f"section {name} did not run")
    cases = sum(total for _, total in rows.values())
    return None, f"seed {seed}: {cases} cases in {len(rows)} sections"


def odd(folder):
    """The same with odd data and two faults at once."""
    return vectors(folder, "vectors_odd.py")


def ours(folder):
    """Our device seals registrations and our origin notifications, with fresh keys; PyNaCl opens them."""
    need_modules("nacl")
    from nacl.exceptions import CryptoError
    from nacl.public import PrivateKey, SealedBox
    from nacl.secret import SecretBox

    relay_key = PrivateKey.generate()
    file = folder / "sealed.json"
    public_key = base64.b64encode(bytes(relay_key.public_key)).decode()
    status, text = swift_test("SealedForOthersTests", {"SEALBELL_SEALED_FOR": public_key,
                                                       "SEALBELL_SEALED_INTO": str(file)})
    if status or not file.exists():
        raise Failed("our side did not seal: " + text.strip().splitlines()[-1])
    told = json.loads(file.read_text())
    boxes = set()
    for row in told["registrations"]:
        box = base64.b64decode(row["sealed"], validate=True)
        boxes.add(box[:32])
        plain = json.loads(SealedBox(relay_key).decrypt(box))
        wanted = {"token_kind": row["kind"], "token": row["token"], "timestamp": row["timestamp"]}
        if row["kind"] == "apns":
            wanted["ios_app_id"] = row["app"]
        expect({name: value for name, value in plain.items() if name in wanted}, wanted, "a registration")
        try:
            SealedBox(PrivateKey.generate()).decrypt(box)
        except CryptoError:
            continue
        raise Failed("a stranger's key opened a registration")
    nonces = set()
    for row in told["notifications"]:
        key = base64.b64decode(row["push_key"], validate=True)
        expect((len(key), key[:1]), (33, b"1"), "a push key")
        data = base64.b64decode(row["encrypted_data"], validate=True)
        nonces.add(data[:24])
        plain = json.loads(SecretBox(key[1:]).decrypt(data))
        expect({name: plain.get(name) for name in row["content"]}, row["content"], "a notification")
    expect((len(boxes), len(nonces)), (len(told["registrations"]), len(told["notifications"])),
           "fresh ephemeral keys and nonces")
    if not boxes or not nonces:
        raise Failed("nothing was sealed")
    return None, f"{len(boxes)} registrations, {len(nonces)} notifications opened"


ROWS = [("PyNaCl seals, we open", vectors), ("PyNaCl seals odd data", odd), ("we seal, PyNaCl opens", ours)]
