"""Row in which pyzmq is the chain daemon and the storage nodes that the relay watches accounts at."""
import os
import secrets

from tools import expect, relay
from .network import network, swarm_of
from .phone import GROUP, USER, Account, Door, Phone, Services

MESSAGE_BYTES = 700
# The swarm that is left in the end.
REST = 3


def new_hash():
    return secrets.token_urlsafe(32).encode()


def of_each_swarm(make, ids):
    """Accounts until each swarm has one."""
    found = {}
    # Bound: each has half of the ring or so.
    for _ in range(200):
        account = make()
        found.setdefault(swarm_of(account, ids), account)
        if len(found) == len(ids):
            break
    return list(found.values())


def opened(services, phone, hash, message, what):
    """The one push that has come opens to this message."""
    [each] = services.arrived("production", 1)
    expect(each["token"].lower(), phone.token, what)
    facts, *data = phone.open(each["json"]["enc_payload"])
    expect((facts["#"], data), (hash.decode(), [] if message is None else [message]), what)


def nodes(folder):
    with network() as swarm, relay(folder, *swarm.settings) as run:
        door, services = Door(run), Services(run)
        makers = [lambda: Account(USER), lambda: Account(GROUP), lambda: Account(GROUP, delegates=True)]
        phones = [Phone(account, data=index % 2 == 0)
                  for make in makers for index, account in enumerate(of_each_swarm(make, swarm.ids))]
        for phone in phones:
            expect(door.plain("/subscribe", phone.subscribe()).get("added"), True, "a subscription")
        messages = 0

        def pass_on(phone, what, nodes=None):
            nonlocal messages
            hash, message = new_hash(), os.urandom(MESSAGE_BYTES) if phone.data else None
            swarm.store(phone.account, hash, message, nodes=nodes)
            opened(services, phone, hash, message, what)
            messages += 1

        for phone in phones:
            swarm.watched(phone)
            # Each of the swarm tells the same, and what nobody asked for or can be read comes first.
            swarm.store(phone.account, new_hash(), None, namespace=1)
            swarm.store(phone.account, b"short", None)
            for node in swarm.members(phone.account):
                swarm.say(node, b"notify.message", b"d1:@3:abce")
                swarm.say(node, b"notify.other", b"")
            pass_on(phone, "what every member told")
        for node in swarm.nodes:
            for phone in phones:
                expect(bool(swarm.shown(phone.account, node)), node in swarm.members(phone.account),
                       "who is shown an account")

        # One that starts again has forgotten everything, and is shown everything.
        first = next(phone for phone in phones if swarm.members(phone.account)[0] is swarm.nodes[0])
        swarm.do(swarm.nodes[0].restart)
        swarm.until(lambda: swarm.shown(first.account, swarm.nodes[0]), "a watch after a restart")
        pass_on(first, "after a restart", [swarm.nodes[0]])

        # A block: one node leaves, another changes swarm, and all accounts are its swarm's now.
        for node in swarm.nodes:
            swarm.do(node.watches.clear)
        swarm.block([REST, REST, None])
        for phone in phones:
            swarm.watched(phone)
            pass_on(phone, "after a block")

        expect(services.new("production") + services.new("fcm"), [], "more than was to come")
        expect({b"ping.ping", b"sub.block", b"rpc.get_service_nodes"} <= set(swarm.daemon.questions), True,
               "what the daemon is asked")
        watches = sum(node.taken for node in swarm.nodes)
    return None, f"{watches} watches at three nodes, every signature verified; {messages} messages, each passed on once"


ROWS = [("pyzmq as a storage node", nodes)]
