"""A Zulip server with two phones, one with each push service."""
from stage import BUNDLE

NAME, KEY, KEY_FILE, SERVED = "zulip-main", "zulip", "bouncer.keys", True
INSTANCE = "protocol: zulip, apps: [acme], keys: bouncer.keys, sign_up: open"
USER = "ada@example.com"
HELD = {
    r"credentials zulip_org_id'*: 64-bit numbers.*": "ids of servers as numbers: the rate limiter's, and whose a realm is",
}


def live(stage, word):
    key = stage.keep("zulip.password", stage.command("origin", "user", "add", USER, "--at", "origin"))
    for service, name in (("apns", "zulip-a.json"), ("fcm", "zulip-g.json")):
        stage.command(
            "device", "zulip", "join", f"http://127.0.0.1:{stage.origin_port}", "--user", USER, "--key-file", key,
            "--state", name, "--bouncer-key", stage.key(NAME), "--service", service, "--app-id", BUNDLE)
    stage.command("origin", "notify", USER, word, "--at", "origin")
    stage.arrived("Zulip's push by Apple", "production", "zulip-a.json")
    stage.arrived("Zulip's push by Google", "fcm", "zulip-g.json")
