"""A Marmot group of three phones, two of which are woken, one by each push service."""
NAME, KEY, KEY_FILE, SERVED = "marmot-main", "nostr", "nostr.key", False
INSTANCE = "protocol: marmot, apps: [acme], key_file: nostr.key, relays: ['{urls[sandbox-nostr]}'], ca: {ca}"
HELD = {}


def live(stage, word):
    ca, group = ["--ca", stage.ca], []
    for service, name in (("apns", "marmot-a.json"), ("fcm", "marmot-g.json"), ("none", "marmot-n.json")):
        told = stage.command(
            "device", "marmot", "join", "--state", name, "--service", service, "--relay", stage.urls["sandbox-nostr"],
            "--server", stage.key(NAME), *ca, *group)
        group = group or ["--group", stage.said(told, "code")]
    stage.command("device", "marmot", "trigger", word, "--state", "marmot-n.json", *ca)
    stage.arrived("Marmot's wake by Apple", "production", "marmot-a.json")
    stage.arrived("Marmot's wake by Google", "fcm", "marmot-g.json")
