"""Row in which PyPI's libraries are Status's clients at our relay, and a server and a friend of our clients."""
import json
import os
import secrets
import uuid
from importlib.metadata import version

from tools import Failed, expect, swift_test
from . import wire
from .wire import KINDS, Key

APNS, FCM = 1, 2
WRONG_TOKEN, NOT_REGISTERED = 1, 3
MALFORMED, MISMATCH = 1, 2
TOPIC = "org.example.sandbox"
TEXT = "a message of ours"


class Server:
    """A server of whom clients know what it prints: its public key in hex."""

    def __init__(self, text):
        key = wire.coincurve.PublicKey(bytes.fromhex(text.removeprefix("0x")))
        self.long, self.short = key.format(compressed=False), key.format()


class Phone:
    """One installation of an account."""

    def __init__(self, account, service):
        self.account, self.service, self.version = account, service, 0
        self.id, self.token = str(uuid.uuid4()), str(uuid.uuid4())
        self.address = secrets.token_hex(32) if service == APNS else "fcm:" + secrets.token_urlsafe(90)
        self.blocked, self.contacts = [], None

    def registration(self, server, **changes):
        """The box of the next version."""
        self.version += 1
        fields = dict(token_type=self.service, device_token=self.address, installation_id=self.id,
                      access_token=self.token, enabled=True, version=self.version, blocked_chat_list=self.blocked,
                      grant=wire.grant(self.account, server.short, self.token),
                      apn_topic=TOPIC if self.service == APNS else "")
        if self.contacts is not None:
            fields.update(allow_from_contacts_only=True, allowed_key_list=[
                wire.box(self.token.encode(), self.account.shared(each)) for each in self.contacts])
        fields.update(changes)
        return wire.box(KINDS["Registration"](**fields).SerializeToString(), self.account.shared(server.short))

    def end(self, server):
        self.version += 1
        fields = dict(installation_id=self.id, version=self.version, unregister=True)
        return wire.box(KINDS["Registration"](**fields).SerializeToString(), self.account.shared(server.short))


class Script:
    """What is sent to our relay, and what each answer has to be."""

    def __init__(self, server):
        """`server`: its public key, in both forms."""
        self.server, self.steps, self.checks = server, [], []

    def send(self, name, payload, topic, check, answered=None, pushes=0):
        """`answered`: the key that an answer is for; `None`: there is none. `pushes`: how many come of it."""
        self.steps.append({
            "name": name, "payload": payload.hex(), "content_topic": wire.content_topic(topic), "pushes": pushes,
            "answered_on": wire.content_topic(wire.partitioned(answered.long)) if answered else None})
        self.checks.append(check)

    def to_server(self, name, message, key, check, by_name=False, is_answered=True, pushes=0):
        topic = wire.personal(self.server.long) if by_name else wire.partitioned(self.server.long)
        self.send(name, wire.sealed_to(message, self.server.short, key), topic, check, key if is_answered else None,
                  pushes)

    def register(self, name, phone, box, error=0, by_name=False):
        def check(reply, _):
            answer = self.opened(reply, phone.account, "RegistrationResponse", wire.REGISTRATION_RESPONSE)
            expect((answer.success, answer.error, answer.request_id), (not error, error, wire.shake(box)), name)
        self.to_server(name, wire.wrapped(box, wire.REGISTRATION, phone.account), phone.account, check, by_name)

    def query(self, name, person, check):
        key = Key()
        message = wire.wrapped(KINDS["Query"](public_keys=[person.person]).SerializeToString(), wire.QUERY, key)
        id = wire.unwrapped(message)[3]

        def judge(reply, _):
            answer = self.opened(reply, key, "QueryResponse", wire.QUERY_RESPONSE)
            expect((answer.success, answer.message_id), (True, id), name)
            check({each.installation_id: each for each in answer.info})
        topic = person.person.hex()
        self.send(name, wire.sealed_for(message, topic, key), topic, judge, key)

    def request(self, name, entries, reports, pushes, again=False):
        key, id = Key(), os.urandom(32)
        parts = [KINDS["Push"](access_token=token, chat_id=wire.shake(b"chat"), public_key=phone.account.person,
                               installation_id=phone.id, message=b"\1\2\3", type=1, author=author)
                 for phone, token, author in entries]
        text = KINDS["Request"](requests=parts, message_id=id).SerializeToString()
        message = wire.wrapped(text, wire.REQUEST, key)

        def check(reply, sent):
            answer = self.opened(reply, key, "Response", wire.RESPONSE)
            expect(answer.message_id, id, name)
            expect([(each.success, each.error, each.installation_id) for each in answer.reports],
                   [(not error, error, entry[0].id) for entry, error in zip(entries, reports)], name)
            expect(sorted(each["token"] for each in sent), sorted(each.address for each in pushes), name)
            for each in sent:
                phone = next(one for one in pushes if one.address == each["token"])
                expect(each["json"]["chatId"], "0x" + wire.shake(b"chat").hex(), name)
                expect(each["json"]["publicKey"], "0x" + phone.account.person.hex(), name)
                expect(each["json"]["encryptedMessage"], "0x010203", name)
        self.to_server(name, message, key, check, pushes=len(pushes))
        if again:
            self.to_server(name + ", again", message, key, nothing, is_answered=False)

    def opened(self, reply, key, kind, number):
        if reply is None:
            raise Failed("no answer")
        expect(reply["content_topic"], wire.content_topic(wire.partitioned(key.long)), "an answer's topic")
        data, sender = wire.opened_by(bytes.fromhex(reply["payload"]), key)
        payload, found, author, _ = wire.unwrapped(data)
        expect((found, author, sender), (number, self.server.long, self.server.long), "an answer's signers")
        return KINDS[kind].FromString(payload)


def nothing(reply, sent):
    expect((reply, sent), (None, []), "silence")


def written(server):
    script = Script(server)
    alice, bob, mallory = Key(), Key(), Key()
    first, second = Phone(alice, APNS), Phone(alice, FCM)
    first.blocked, second.contacts = [mallory.author], [mallory.short, bob.short]
    box = first.registration(server)
    script.register("a phone of Apple's", first, box)
    script.register("the same again", first, box, MISMATCH)
    script.register("on the topic of the key", second, second.registration(server), by_name=True)
    foreign = wire.grant(alice, bob.short, first.token)
    script.register("a grant for another server", first, first.registration(server, grant=foreign), MALFORMED)
    script.register("no token", first, first.registration(server, device_token=""), MALFORMED)

    def told(info):
        expect(set(info), {first.id, second.id}, "installations")
        one, other = info[first.id], info[second.id]
        expect((one.access_token, len(one.allowed_key_list)), (first.token, 0), "for anybody")
        expect(wire.signer(one.grant, alice.short, server.short, one.access_token.encode()), alice.long, "a grant")
        entries = other.allowed_key_list
        expect((other.access_token, len(entries)), ("", 2), "for contacts")
        expect(wire.unboxed(entries[1], bob.shared(alice.short)).decode(), second.token, "a contact's token")
    script.query("a query", alice, told)
    script.request("four notifications", [
        (first, first.token, bob.author), (second, second.token, bob.author), (first, second.token, bob.author),
        (Phone(alice, FCM), first.token, bob.author)
    ], [0, 0, WRONG_TOKEN, NOT_REGISTERED], [first, second], again=True)
    script.request("of somebody who is blocked", [(first, first.token, mallory.author)], [0], [])
    script.register("an end", first, first.end(server))
    script.request("after the end", [(first, first.token, bob.author)], [NOT_REGISTERED], [])
    script.register("an old registration", first, box, MISMATCH)
    script.to_server("of no protocol", os.urandom(90), bob, nothing, is_answered=False)
    script.send("sealed to another", wire.sealed_to(b"x", bob.short, bob), wire.partitioned(server.long), nothing)
    return script


def code(friend, server, token, phone):
    """A contact code as its owner publishes it."""
    info = KINDS["Info"](access_token=token, installation_id=phone, public_key=friend.person, version=3,
                         grant=wire.grant(friend, server.short, token), server_public_key=server.short)
    message = wire.wrapped(KINDS["Code"](info=[info]).SerializeToString(), wire.ADVERTISEMENT, friend)
    whole = KINDS["Protocol"](installation_id=phone, public_message=message).SerializeToString()
    topic = wire.contact_code(friend.long)
    return {"payload": wire.sealed_for(whole, topic, friend).hex(), "content_topic": wire.content_topic(topic)}


def registered(device, server):
    """Our phone's registration, as this server reads it."""
    owner = bytes.fromhex(device["key"])
    topic = wire.content_topic(wire.partitioned(server.long))
    [sent] = [each for each in device["messages"] if each["content_topic"] == topic]
    data, sender = wire.opened_by(bytes.fromhex(sent["payload"]), server)
    payload, kind, author, _ = wire.unwrapped(data)
    expect((kind, author, sender), (wire.REGISTRATION, owner, owner), "who registers")
    told = KINDS["Registration"].FromString(wire.unboxed(payload, server.shared(owner)))
    expect((told.token_type, told.device_token, told.apn_topic), (APNS, device["token"], TOPIC), "a phone of ours")
    expect((told.installation_id, told.version, told.enabled), (device["installation"], 1, True), "a phone of ours")
    uuid.UUID(told.access_token)
    short = wire.coincurve.PublicKey(owner).format()
    expect(wire.signer(told.grant, short, server.short, told.access_token.encode()), owner, "our grant")


def asked(origin, server, friend, token, phone):
    """Our sender's request, as this server reads it, and its message, as the friend does."""
    own = bytes.fromhex(origin["key"])
    topic = wire.content_topic(wire.partitioned(server.long))
    [sent] = [each for each in origin["messages"] if each["content_topic"] == topic]
    data, sender = wire.opened_by(bytes.fromhex(sent["payload"]), server)
    payload, kind, author, _ = wire.unwrapped(data)
    expect((kind, author == sender, author == own), (wire.REQUEST, True, False), "a key for the request alone")
    told = KINDS["Request"].FromString(payload)
    [push] = told.requests
    expect((push.access_token, push.installation_id, push.public_key), (token, phone, friend.person), "our request")
    name = wire.shake(b"0x" + own.hex().encode())
    expect((push.author, push.chat_id, push.type), (name, name, 1), "our request")
    note, writer = wire.opened_by(push.message, friend)
    count = note[0]
    length = int.from_bytes(note[1 + count:3 + count])
    expect((writer, note[1:1 + count]), (own, told.message_id), "our note")
    expect(note[3 + count:3 + count + length].decode(), TEXT, "our note")


def both(folder):
    relay_key = Key()
    script = written(relay_key)
    friend, token, phone = Key(), str(uuid.uuid4()), str(uuid.uuid4())
    # A server of its own, which our clients meet.
    server = Key()
    made, ours = folder / "python.json", folder / "ours.json"
    # They hold a private key of this run.
    os.umask(0o077)
    made.write_text(json.dumps({
        "server_private": relay_key.secret.hex(), "steps": script.steps, "other_server": server.long.hex(),
        "friend": friend.long.hex(), "contact_code": code(friend, server, token, phone), "topic": TOPIC, "text": TEXT}))
    status, text = swift_test("CoincurvePeerTests",
                              {"SEALBELL_STATUS_FROM": str(made), "SEALBELL_STATUS_INTO": str(ours)})
    if status or not ours.exists():
        raise Failed("our side: " + text.strip().splitlines()[-1])
    told = json.loads(ours.read_text())
    expect(len(told["steps"]), len(script.checks), "answers")
    for check, step in zip(script.checks, told["steps"]):
        check(step["reply"], step["pushes"])
    registered(told["device"], server)
    asked(told["origin"], server, friend, token, phone)
    return f"coincurve {version('coincurve')} as Status's clients and server", \
        f"{len(script.steps)} messages to our relay and its answers, a registration and a request of our clients"


ROWS = [("coincurve as Status's clients and server", both)]
