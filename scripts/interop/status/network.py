"""Row in which PyPI's libraries are Status's clients of a serving relay: both at a node of one Waku network."""
import base64
import json
import time
import urllib.parse
import urllib.request

from tools import Failed, expect, relay
from .payloads import NOT_REGISTERED, Phone, Server, written
from . import wire

SHARD = "/waku/2/rs/16/32"
WAIT_SECONDS = 60
REST_SECONDS = 0.02


def call(url, body=None):
    """What a local server answers with: JSON, or text."""
    asked = urllib.request.Request(url, None if body is None else json.dumps(body).encode(),
                                   {"Content-Type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=WAIT_SECONDS) as answer:
        text = answer.read().decode()
        return json.loads(text) if answer.headers.get_content_type() == "application/json" else text


class Node:
    """The clients' node, by the interface that nodes have."""

    def __init__(self, url):
        self.url, self.said, self.heard = url, set(), []
        expect(call(url + "/relay/v1/subscriptions", [SHARD]), "OK", "a subscription")

    @property
    def messages(self):
        return f"{self.url}/relay/v1/messages/{urllib.parse.quote(SHARD, safe='')}"

    def say(self, step):
        payload = base64.b64encode(bytes.fromhex(step["payload"])).decode()
        self.said.add(payload)
        expect(call(self.messages, {"payload": payload, "contentTopic": step["content_topic"], "version": 1,
                                    "timestamp": time.time_ns()}), "OK", step["name"])

    def hear(self):
        """Others' messages; what was said here is heard, too."""
        self.heard += [each for each in call(self.messages) if each["payload"] not in self.said]

    def answer(self, topic, what):
        """The next message of others, which has to be an answer on this topic."""
        ends = time.monotonic() + WAIT_SECONDS
        while not self.heard:
            if time.monotonic() > ends:
                raise Failed(f"{what}: no answer within {WAIT_SECONDS} s")
            time.sleep(REST_SECONDS)
            self.hear()
        found = self.heard.pop(0)
        expect((found["contentTopic"], found["version"], found["ephemeral"]), (topic, 1, False), what)
        return {"payload": base64.b64decode(found["payload"], validate=True).hex(), "content_topic": topic}


class Services:
    """What reached the simulated push services."""

    def __init__(self, url):
        self.url, self.seen = url, {"production": 0, "fcm": 0}

    def new(self):
        found = []
        for name, seen in self.seen.items():
            page = call(f"{self.url}/{name}/deliveries?after={seen}&limit=1000")
            if page:
                self.seen[name] = page[-1]["number"]
            for each in page:
                body = json.loads(base64.b64decode(each["body"]))
                found.append({"token": each["token"], "json": body["message"]["data"] if name == "fcm" else body})
        return found

    def arrived(self, count, what):
        found, ends = self.new(), time.monotonic() + WAIT_SECONDS
        while len(found) < count:
            if time.monotonic() > ends:
                raise Failed(f"{what}: {len(found)} of {count} pushes within {WAIT_SECONDS} s")
            time.sleep(REST_SECONDS)
            found += self.new()
        return found


def network(folder):
    with relay(folder) as run:
        urls = run["urls"]
        node, services = Node(urls["sandbox-waku-client"]), Services(urls["sandbox-control"])
        script = written(Server(run["public_keys"]["status-main"][0]))
        # Behind everything that is met with silence: its answer is the next that comes.
        stranger = Phone(wire.Key(), 1)
        script.request("for somebody who never was", [(stranger, stranger.token, wire.Key().author)],
                       [NOT_REGISTERED], [])
        for step, check in zip(script.steps, script.checks):
            node.say(step)
            reply = node.answer(step["answered_on"], step["name"]) if step["answered_on"] else None
            check(reply, services.arrived(step["pushes"], step["name"]))
        node.hear()
        expect((node.heard, services.new()), ([], []), "more than was to come")
        told = call(urls["admin"] + "/status/statistics?instance=status-main")
        expect([told["waku"]["listening"], *(told[name] for name in ("registered", "unregistered", "queries"))],
               [True, 2, 1, 1], "what the relay says it did")
        answered = sum(step["answered_on"] is not None for step in script.steps)
        pushes = sum(step["pushes"] for step in script.steps)
    return None, f"{len(script.steps)} messages to a serving relay over a Waku node, {answered} answers opened, " \
        f"{pushes} pushes at Apple's and Google's doubles"


ROWS = [("coincurve over a Waku node", network)]
