"""Rows in which what is written of our origin's doors is held against a running one: every path and status of its
OpenAPI page, and the proxy that its guide shows.
"""
import os
import subprocess
import time

import requests
import yaml

from tools import ROOT, SEALBELL, Failed, answers, certificates, expect, free_port, guide_block, need, need_modules, \
    relay, running, version
from .zulip_clients import USER, Client, ZapPhone, origin

METHODS = ("get", "post", "delete", "put")
TOKEN = "application-token-of-a-trial"
NAME = "chat.acme.example"
# A poll is answered after 25 s of silence.
SILENCE_SECONDS = 25


class Page:
    """The page, and who calls by it."""

    def __init__(self, url, key, password):
        self.page = yaml.safe_load((ROOT / "docs/openapi/origin.yaml").read_text())
        self.url, self.auth = url, {"user": (USER, key), "appPassword": (USER, password)}
        self.calls = 0

    def ask(self, method, path, scheme):
        self.calls += 1
        fields = {"OCS-APIRequest": "true", "Accept": "application/json"} if path.startswith("/ocs/") else {}
        if scheme == "application":
            fields["Authorization"] = "Bearer " + TOKEN
        # A number that is none, or an id that nobody knows.
        url = self.url + path.replace("{id}", "1" if path.startswith("/ocs/") else "0" * 32)
        return requests.request(method, url, headers=fields, auth=self.auth.get(scheme), timeout=60,
                                params={"dont_block": "true"}, allow_redirects=False)

    def found(self, node):
        """What a reference points at, or the node itself."""
        while "$ref" in node:
            names, node = node["$ref"].removeprefix("#/").split("/"), self.page
            for name in names:
                node = node[name]
        return node

    def holds(self, what, body, responses, status):
        """The members of an answer are those that the page names, and all that it needs."""
        content = self.found(responses[status]).get("content", {}).get("application/json")
        if content is None:
            return
        schema = self.found(content["schema"])
        named, needed = schema.get("properties", {}).keys(), set(schema.get("required", ()))
        expect(sorted(set(body) - set(named)), [], f"{what}: members that the page does not name")
        expect(sorted(needed - set(body)), [], f"{what}: members that are missing")

    def path(self, path, item):
        for method in METHODS:
            what = f"{method} {path}"
            call = item.get(method)
            schemes = (call or {}).get("security", self.page["security"])
            scheme = next((name for each in reversed(schemes) for name in each), None)
            if call is None:
                scheme = "application" if path.startswith("/notify") else "user"
                expect(self.ask(method, path, scheme).status_code, 405, what)
                continue
            told = self.ask(method, path, scheme)
            status = str(told.status_code)
            expect(status in call["responses"], True, f"{what}: {status}, which the page does not have")
            self.holds(what, told.json(), call["responses"], status)
            bare = self.ask(method, path, None).status_code
            # What is shown to whoever knows its path is not shown at another.
            open_status = 400 if "{token}" in path else 200
            expect(bare, 401 if schemes and {} not in schemes else open_status, f"{what} without credentials")
            expect("401" in call["responses"] or bare == open_status, True, f"{what}: 401, which the page does not have")


def openapi(folder):
    need_modules("nacl", "requests", "yaml")
    token = folder / "token"
    token.touch(0o600)
    token.write_text(TOKEN)
    with relay(folder), origin(folder, folder / "state", f"origin.application_token_file={token}") as (url, key, place):
        made = subprocess.run([SEALBELL, "origin", "user", "key", USER, "--nextcloud", "--at", str(place)],
                              capture_output=True, text=True, timeout=60)
        expect((made.returncode, made.stderr), (0, ""), "an app password")
        page = Page(url, key, made.stdout.strip())
        for path, item in page.page["paths"].items():
            page.path(path, item)
    return None, f"{page.calls} calls at {len(page.page['paths'])} paths are answered as the page says"


def nginx(folder):
    need("nginx", "openssl")
    need_modules("nacl", "requests", "yaml")
    certificates(folder, NAME)
    with relay(folder) as run, origin(
            folder, folder / "state", "listeners.origin.trusted_proxies=127.0.0.1") as (url, key, _):
        port, live = free_port(), f"/etc/letsencrypt/live/{NAME}"
        block = guide_block(
            "nginx", ("listen 443 ", f"listen 127.0.0.1:{port} "), ("127.0.0.1:8490", url.removeprefix("http://")),
            (f"{live}/fullchain.pem", "leaf.pem"), (f"{live}/privkey.pem", "leaf.key"),
            ("/var/log/nginx/error.log", "error.log"), guide="origin")
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "".join(f"{kind}_temp_path {kind};\n" for kind in kinds)
        # The worker must be able to write beside the configuration, as Debian's can below /var/lib/nginx.
        user = "user root;\n" if os.geteuid() == 0 else ""
        (folder / "nginx.conf").write_text(
            f"{user}daemon off;\npid nginx.pid;\nworker_processes 1;\nevents {{}}\nhttp {{\n{temporary}{block}}}\n")
        command = ["nginx", "-p", str(folder), "-e", "error.log", "-c", str(folder / "nginx.conf")]
        with running(command, folder, answers(port), absent=Failed):
            client = ProxiedClient(port, key, folder / "ca.pem")
            phone = ZapPhone("fcm")
            client("POST", "mobile_push/register", **phone.fields(run["public_keys"]["zulip-main"][0]))
            client.next(2, "an account's events through the proxy")
            begun = time.monotonic()
            [beat] = client("GET", "events", queue_id=client.queue, last_event_id=client.last)["events"]
            waited = time.monotonic() - begun
            expect((beat["type"], waited >= SILENCE_SECONDS), ("heartbeat", True), f"a poll of {waited:.1f} s")
            for path, status in (("notify", 404), ("ocs/v2.php/cloud/user", 401)):
                told = client.session.get(f"{client.url}/{path}", auth=("", ""), timeout=10)
                expect(told.status_code, status, path)
    named = "nginx " + version(["nginx", "-v"], r"nginx/(\S+)") + " as the origin guide's proxy"
    return named, f"{client.calls} calls, a poll of {waited:.1f} s"


class ProxiedClient(Client):
    """By https under the name that the certificate has."""

    def __init__(self, port, key, authority):
        self.port, self.authority = port, authority
        super().__init__(f"https://{NAME}:{port}", key)

    def ask(self, method, path, **form):
        self.session.verify = str(self.authority)
        self.session.mount("https://", Loopback(NAME))
        return super().ask(method, path, **form)


class Loopback(requests.adapters.HTTPAdapter):
    """Connects to this machine, whatever the URL's name, and holds the certificate against the name."""

    def __init__(self, name):
        self.name = name
        super().__init__()

    def init_poolmanager(self, *words, **fields):
        super().init_poolmanager(*words, server_hostname=self.name, assert_hostname=self.name, **fields)

    def send(self, request, *words, **fields):
        request.headers["Host"] = self.name
        request.url = request.url.replace(f"//{self.name}", "//127.0.0.1")
        return super().send(request, *words, **fields)


ROWS = [("OpenAPI of our origin", openapi), ("nginx as the origin guide's proxy", nginx)]
