"""A chain daemon and storage nodes in pyzmq with CURVE, as OxenMQ has them on the wire. One thread has all sockets."""
import contextlib
import json
import queue
import threading
import time

import zmq
import zmq.auth.thread
from bencode2 import bdecode, bencode
from nacl.public import PrivateKey
from nacl.signing import VerifyKey
from zmq.utils import z85

from tools import Failed, expect

WAIT_SECONDS = 30
TICK_MILLISECONDS = 20
FORTNIGHT_SECONDS, DAY_SECONDS = 14 * 86_400, 86_400
KEYS_BY_KIND = {"user": {b"P"}, "other": {b"p"}}


def swarm_of(account, ids):
    """By distance on the ring of 64 bits; a tie goes to the left."""
    ids, point, ring = sorted(ids), account.swarm_point, 1 << 64
    right = next((each for each in ids if each >= point), ids[0])
    left = ids[ids.index(right) - 1]
    return right if (right - point) % ring < (point - left) % ring else left


def verified(watch):
    """One watch as a storage node judges it: the account, and the signature over the rebuilt text."""
    kind = "user" if b"P" in watch else "other"
    known = KEYS_BY_KIND[kind] | {b"S", b"T", b"d", b"n", b"s", b"t"}
    if not watch.keys() <= known or not watch.keys() >= KEYS_BY_KIND[kind] | {b"n", b"s", b"t"}:
        raise Failed(f"keys of a watch: {sorted(watch)}")
    if kind == "user":
        owner = VerifyKey(watch[b"P"])
        account = b"\5" + bytes(owner.to_curve25519_public_key())
    else:
        account = watch[b"p"]
        owner = VerifyKey(account[1:])
    signer = owner
    if b"T" in watch:
        token = watch[b"T"]
        expect((len(token), token[0], token[1] & 1), (36, account[0], 1), "a subaccount's token")
        owner.verify(token, watch[b"S"])
        signer = VerifyKey(token[4:])
    names = watch[b"n"]
    expect(names, sorted(set(names)), "namespaces of a watch")
    expect(watch.get(b"d", 1), 1, "d of a watch")
    now = time.time()
    if not now - FORTNIGHT_SECONDS < watch[b"t"] < now + DAY_SECONDS:
        raise Failed("a watch's time is out of the window")
    text = f"MONITOR{account.hex()}{watch[b't']}{int(b'd' in watch)}{','.join(map(str, names))}"
    signer.verify(text.encode(), watch[b"s"])
    return account


class Listener:
    """A ROUTER with CURVE, and what came to it."""

    def __init__(self, context):
        key = PrivateKey.generate()
        self.public, self.secret = bytes(key.public_key), bytes(key)
        # Any that is free; after a restart the same.
        self.context, self.port = context, 0
        self.clients, self.swarm = set(), None
        self.watches, self.taken, self.questions = [], 0, []
        self.open()

    def open(self):
        self.socket = self.context.socket(zmq.ROUTER)
        self.socket.setsockopt(zmq.CURVE_SERVER, 1)
        self.socket.setsockopt(zmq.CURVE_SECRETKEY, z85.encode(self.secret))
        self.socket.setsockopt(zmq.CURVE_PUBLICKEY, z85.encode(self.public))
        self.socket.setsockopt(zmq.ROUTER_HANDOVER, 1)
        self.socket.setsockopt(zmq.LINGER, 0)
        # The port may be in its last breath after a restart.
        ends = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                self.socket.bind(f"tcp://127.0.0.1:{self.port}")
                break
            except zmq.ZMQError:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.05)
        self.port = int(self.socket.getsockopt_string(zmq.LAST_ENDPOINT).rsplit(":", 1)[1])

    def restart(self):
        """As a storage node that starts again: it has lost what it was shown."""
        self.socket.close()
        self.clients, self.watches = set(), []
        self.open()


class Network:
    """A chain daemon and three storage nodes: two of one swarm, and one of another."""

    # Above what a signed number, and a Double, hold exactly.
    SWARMS = (3, 3, (1 << 63) + 5)

    def __init__(self):
        self.context = zmq.Context()
        self.authority = zmq.auth.thread.ThreadAuthenticator(self.context)
        self.authority.start()
        # Any key may come in: who it is tells us what came, and it is compared with what it calls itself.
        self.authority.configure_curve(domain="*", location=zmq.auth.CURVE_ALLOW_ANY)
        self.daemon = Listener(self.context)
        self.nodes = [Listener(self.context) for _ in self.SWARMS]
        for node, swarm in zip(self.nodes, self.SWARMS):
            node.swarm = swarm
        self.height, self.faults = 100, []
        self.work, self.changed, self.ended = queue.Queue(), threading.Condition(), False
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    @property
    def settings(self):
        """What an operator's configuration says of the daemon."""
        at = "instances.session-main."
        return [f"{at}oxend=tcp://127.0.0.1:{self.daemon.port}", f"{at}oxend_key={self.daemon.public.hex()}"]

    @property
    def ids(self):
        return {node.swarm for node in self.nodes if node.swarm is not None}

    def members(self, account):
        swarm = swarm_of(account, self.ids)
        return [node for node in self.nodes if node.swarm == swarm]

    # MARK: The thread

    def serve(self):
        while not self.ended:
            poller = zmq.Poller()
            listeners = {each.socket: each for each in (self.daemon, *self.nodes)}
            for socket in listeners:
                poller.register(socket, zmq.POLLIN)
            for socket, _ in poller.poll(TICK_MILLISECONDS):
                frames = socket.recv_multipart(copy=False)
                with self.changed:
                    try:
                        self.take(listeners[socket], frames)
                    except Exception as fault:  # It is the row's to tell.
                        self.faults.append(f"{type(fault).__name__}: {fault}")
                    self.changed.notify_all()
            with contextlib.suppress(queue.Empty):
                while True:
                    job, done = self.work.get_nowait()
                    with self.changed:
                        job()
                        self.changed.notify_all()
                    done.set()
        for each in (self.daemon, *self.nodes):
            each.socket.close()

    def take(self, listener, frames):
        route = frames[0].bytes
        expect(route, b"L" + z85.decode(frames[1].get("User-Id")), "a client's name, which has its key of CURVE")
        name, *parts = [frame.bytes for frame in frames[1:]]
        if name == b"HI":
            expect(parts, [], "HI")
            listener.clients.add(route)
            return listener.socket.send_multipart([route, b"HELLO"])
        if route not in listener.clients:
            raise Failed(f"{name!r} before HI")
        tag, *body = parts
        expect(len(tag), 15, "a tag")
        answer = self.of_daemon(name, body) if listener is self.daemon else self.of_node(listener, name, body)
        listener.socket.send_multipart([route, b"REPLY", tag, *answer])

    def of_daemon(self, name, body):
        self.daemon.questions.append(name)
        if name == b"ping.ping":
            return [b"pong"]
        if name == b"sub.block":
            return [b"OK"]
        expect(name, b"rpc.get_service_nodes", "a question to the daemon")
        asked = json.loads(body[0])
        expect((asked["active_only"], {"pubkey_x25519", "public_ip", "storage_lmq_port", "swarm_id"} <=
                asked["fields"].keys()), (True, True), "a question to the daemon")
        nodes = [{"pubkey_x25519": node.public.hex(), "public_ip": "127.0.0.1", "storage_lmq_port": node.port,
                  "swarm_id": node.swarm} for node in self.nodes if node.swarm is not None]
        # One that is in no swarm, and one that nobody can reach.
        nodes += [{**nodes[0], "pubkey_x25519": "ab" * 32, "swarm_id": (1 << 64) - 1},
                  {**nodes[0], "pubkey_x25519": "cd" * 32, "public_ip": "0.0.0.0"}]
        return [b"200", json.dumps({"block_hash": f"{self.height:064x}", "height": self.height,
                                    "service_node_states": nodes}).encode()]

    def of_node(self, node, name, body):
        expect((name, len(body)), (b"monitor.messages", 1), "a request to a storage node")
        read = bdecode(body[0])
        # bencode2 sorts keys by bytes, so only a body that is sorted comes out the same.
        expect(bencode(read) == body[0], True, "a body in the only order that storage nodes read")
        expect(type(read), list, "a body")
        watches = [(verified(watch), watch) for watch in read]
        node.watches += watches
        node.taken += len(watches)
        return [bencode([{b"success": 1}] * len(watches))]

    # MARK: What a row does

    def until(self, seen, what):
        """Waits until `seen()` holds; it is asked whenever something has come."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.faults or seen(), WAIT_SECONDS):
                raise Failed(f"{what}: not within {WAIT_SECONDS} s")
            self.judge()

    def judge(self):
        if self.faults:
            raise Failed(self.faults[0])

    def do(self, job):
        """Has the thread do it, and waits until it is done."""
        done = threading.Event()
        self.work.put((job, done))
        if not done.wait(WAIT_SECONDS):
            raise Failed(f"the network's thread did not get to it within {WAIT_SECONDS} s")

    def say(self, node, *frames):
        """Says something to everyone connected."""
        def job():
            for route in node.clients:
                node.socket.send_multipart([route, *frames])
        self.do(job)

    def block(self, swarms):
        """A block: nodes are in these swarms from now on, or gone where it is `None`."""
        def job():
            self.height += 1
            for node, swarm in zip(self.nodes, swarms):
                node.swarm = swarm
            for route in self.daemon.clients:
                self.daemon.socket.send_multipart(
                    [route, b"notify.block", str(self.height).encode(), f"{self.height:064x}".encode()])
        self.do(job)

    def shown(self, account, node):
        return [watch for id, watch in node.watches if id == account.id]

    def watched(self, phone):
        """Waits until every member of the account's swarm has the phone's watch."""
        signature = phone.account.signer.sign(phone.monitor_text).signature
        for node in self.members(phone.account):
            self.until(lambda: any(watch[b"s"] == signature for watch in self.shown(phone.account, node)),
                       "a watch at each member of the swarm")

    def store(self, account, hash, message, namespace=0, nodes=None, **changes):
        """A message has come: each member of the swarm tells."""
        now = int(time.time() * 1000)
        told = {b"@": account.id, b"h": hash, b"n": namespace, b"t": now, b"z": now + FORTNIGHT_SECONDS * 1000}
        if message is not None:
            told[b"~"] = message
        told.update({key.encode(): value for key, value in changes.items()})
        for node in nodes or self.members(account):
            self.say(node, b"notify.message", bencode(told))
        return now

    def stop(self):
        self.ended = True
        self.thread.join(WAIT_SECONDS)
        self.authority.stop()
        self.context.destroy(linger=0)


@contextlib.contextmanager
def network():
    made = Network()
    try:
        yield made
        made.judge()
    finally:
        made.stop()
