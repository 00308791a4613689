"""A Nextcloud server with two apps, one with each push service."""
NAME, KEY, KEY_FILE, SERVED = "nextcloud-main", None, None, True
INSTANCE = "protocol: nextcloud, apps: [acme]"
ORIGIN = "nextcloud: { allow_local_proxies: true }, "
USER = "bob@example.com"
HELD = {
    r"nextcloud-[ag] device\.2\.3'*: .*": "keys of users of registered devices",
    r"nextcloud-[ag] device\.2\.[15]'*: bytes.*": "the identifier of the device that was found last",
}


def live(stage, word):
    stage.command("origin", "user", "add", USER, "--at", "origin")
    # A server has one registration for each app password.
    for app, name in (("files-ios", "nextcloud-a.json"), ("files-android", "nextcloud-g.json")):
        password = stage.keep(
            name + ".password", stage.command("origin", "user", "key", USER, "--nextcloud", "--at", "origin"))
        stage.command(
            "device", "nextcloud", "register", "--state", name, "--app", app, "--server",
            f"http://localhost:{stage.origin_port}", "--user", USER, "--password-file", password, "--relay",
            f"{stage.public.replace('127.0.0.1', 'localhost')}/{NAME}/acme")
    stage.command("origin", "notify", USER, word, "--at", "origin")
    stage.arrived("Nextcloud's push by Apple", "production", "nextcloud-a.json")
    stage.arrived("Nextcloud's push by Google", "fcm", "nextcloud-g.json")
