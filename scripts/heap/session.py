"""Phones of Session, one with each push service, and somebody who writes to them."""
NAME, KEY, KEY_FILE, SERVED = "session-main", "session", "onion.key", True
INSTANCE = "protocol: session, apps: [acme], onion_key: onion.key, oxend: '{urls[sandbox-oxend]}'"
HELD = {}


def live(stage, word):
    for service, cipher, name in (("apns", "xchacha20", "session-a.json"), ("firebase", "aes-gcm", "session-g.json")):
        told = stage.command(
            "device", "session", "subscribe", "--state", name, "--service", service, "--cipher", cipher, "--server",
            stage.public, "--onion-key", stage.key(NAME))
        account = stage.said(told, "account")
        stage.command("device", "session", "send", "--to", account, "--sandbox", "peers", text=word)
    stage.arrived("Session's push by Apple", "production", "session-a.json")
    stage.arrived("Session's push by Google", "fcm", "session-g.json")
