"""Row in which strangers ask a serving relay for as much as they may: full lists, and one query that names them often."""
import base64
import os
import time

from tools import Failed, expect, relay
from . import wire
from .network import REST_SECONDS, WAIT_SECONDS, Node, Services
from .payloads import APNS, FCM, Phone, Script, Server, nothing
from .wire import KINDS, Key

# What a node carries, and of a list as much as a registration then holds.
NODE_BYTES = 150 << 10
CONTACTS = 2_100
# How often the query names the one key, and what all responses to it may have.
NAMED = 64
ANSWER_BYTES = (1 << 20) + (256 << 10)
MENTION = 2


def whole(node, topic, ends_with):
    """Messages on this topic until one of them, or all together, satisfy."""
    found, ends = [], time.monotonic() + WAIT_SECONDS
    while not ends_with(found):
        if time.monotonic() > ends:
            raise Failed(f"{len(found)} responses within {WAIT_SECONDS} s, which are not all")
        time.sleep(REST_SECONDS)
        node.hear()
        found += [each for each in node.heard if each["contentTopic"] == topic]
        node.heard = []
    return found


class Query:
    """One query, and what it is told."""

    def __init__(self, script, keys):
        self.key = Key()
        message = wire.wrapped(KINDS["Query"](public_keys=keys).SerializeToString(), wire.QUERY, self.key)
        self.id, self.bytes = wire.unwrapped(message)[3], 0
        topic = keys[0].hex()
        self.payload, self.on = wire.sealed_for(message, topic, self.key), wire.content_topic(topic)
        self.answered_on = wire.content_topic(wire.partitioned(self.key.long))
        self.script = script

    @property
    def step(self):
        return {"name": "a query", "payload": self.payload.hex(), "content_topic": self.on}

    def told(self, heard):
        """What all responses say, each installation's lists put together."""
        found = {}
        for each in heard:
            payload = base64.b64decode(each["payload"], validate=True)
            self.bytes += len(each["payload"])
            expect(len(each["payload"]) <= NODE_BYTES, True, "a response that a node carries")
            answer = self.script.opened({"content_topic": each["contentTopic"], "payload": payload.hex()}, self.key,
                                        "QueryResponse", wire.QUERY_RESPONSE)
            expect((answer.success, answer.message_id), (True, self.id), "a response")
            for info in answer.info:
                found.setdefault(info.installation_id, []).extend(info.allowed_key_list)
        return found


def strangers(folder):
    with relay(folder) as run:
        urls = run["urls"]
        node, services = Node(urls["sandbox-waku-client"]), Services(urls["sandbox-control"])
        script = Script(Server(run["public_keys"]["status-main"][0]))
        owner, friend = Key(), Key()
        phones = [Phone(owner, APNS), Phone(owner, FCM)]
        # Entries of a list are boxes: whose they are, nobody can tell.
        lists = [[os.urandom(64) for _ in range(CONTACTS)] for _ in phones]
        for phone, entries in zip(phones, lists):
            box = phone.registration(script.server, allow_from_contacts_only=True, allowed_key_list=entries)
            script.register("a full list", phone, box)
        play(script, node, services)

        query = Query(script, [owner.person] * NAMED)
        node.say(query.step)
        wanted = {phone.id: entries for phone, entries in zip(phones, lists)}
        heard = whole(node, query.answered_on, lambda found: len(found) >= 3)
        ends = time.monotonic() + WAIT_SECONDS
        while sum(map(len, query.told(heard).values())) < 2 * CONTACTS and time.monotonic() < ends:
            time.sleep(REST_SECONDS)
            node.hear()
            heard += [each for each in node.heard if each["contentTopic"] == query.answered_on]
            node.heard, query.bytes = [], 0
        query.bytes = 0
        told = query.told(heard)
        expect({name: sorted(each) for name, each in told.items()},
               {name: sorted(each) for name, each in wanted.items()}, "the lists, each entry once")
        expect(query.bytes <= ANSWER_BYTES, True, f"{query.bytes} bytes of answers to {len(query.payload)}")

        # It lives, and blocks a chat for mentions.
        last = Phone(Key(), APNS)
        last.blocked = [wire.shake(b"chat")]
        script.steps, script.checks = [], []
        allowed = [wire.shake(b"chat"), wire.shake(b"other")]
        script.register("somebody else", last,
                        last.registration(script.server, allowed_mentions_chat_list=allowed))
        mention(script, "a mention in a chat that is blocked", last, friend, b"chat", [])
        mention(script, "a mention in another chat", last, friend, b"other", [last])
        script.to_server("a box that does not open", wire.wrapped(os.urandom(400), wire.REGISTRATION, friend), friend,
                         nothing, is_answered=False)
        script.register("behind it", last, last.registration(script.server))
        play(script, node, services)
        node.hear()
        expect(node.heard, [], "more than was to come")
    return None, f"{len(heard)} responses of {query.bytes} bytes to a query of {len(query.payload)} that names one key " \
        f"{NAMED} times, {2 * CONTACTS} entries in them, each once; mentions in a blocked chat wake nobody"


def mention(script, name, phone, sender, chat, pushed):
    key = Key()
    entry = KINDS["Push"](access_token=phone.token, chat_id=wire.shake(chat), public_key=phone.account.person,
                          installation_id=phone.id, message=b"\1", type=MENTION, author=sender.author)
    text = KINDS["Request"](requests=[entry], message_id=os.urandom(32)).SerializeToString()

    def check(reply, sent):
        answer = script.opened(reply, key, "Response", wire.RESPONSE)
        expect([(each.success, each.error) for each in answer.reports], [(True, 0)], name)
        expect([each["token"] for each in sent], [each.address for each in pushed], name)
    script.to_server(name, wire.wrapped(text, wire.REQUEST, key), key, check, pushes=len(pushed))


def play(script, node, services):
    for step, check in zip(script.steps, script.checks):
        node.say(step)
        reply = node.answer(step["answered_on"], step["name"]) if step["answered_on"] else None
        check(reply, services.arrived(step["pushes"], step["name"]))


ROWS = [("coincurve as strangers of a Status relay", strangers)]
