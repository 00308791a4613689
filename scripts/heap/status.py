"""Members of Status, one with each push service, who write to each other."""
from stage import BUNDLE

NAME, KEY, KEY_FILE, SERVED = "status-main", "status", "status.key", False
INSTANCE = "protocol: status, apps: [acme], key_file: status.key, waku: {{ url: '{urls[sandbox-waku]}' }}"
HELD = {}


def live(stage, word):
    accounts = {}
    for service, name in (("apns", "status-a.json"), ("fcm", "status-g.json")):
        told = stage.command(
            "device", "status", "register", "--state", name, "--service", service, "--topic", BUNDLE, "--node",
            stage.urls["sandbox-waku-client"], "--server", stage.key(NAME))
        accounts[name] = stage.said(told, "account")
    for sender, receiver in (("status-a.json", "status-g.json"), ("status-g.json", "status-a.json")):
        stage.command("device", "status", "send", "--state", sender, "--to", accounts[receiver], text=word)
    stage.arrived("Status's push by Apple", "production", "status-a.json")
    stage.arrived("Status's push by Google", "fcm", "status-g.json")
