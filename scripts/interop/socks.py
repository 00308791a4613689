"""A SOCKS5 proxy (RFC 1928, RFC 1929) on loopback that knows a few names and leads them to local ports. It takes
names alone, wants credentials, and notes how it was asked.
"""
import asyncio
import contextlib
import ssl
import threading

NAME, CREDENTIALS = 3, 2
TLS_PORT = 443
PIECE = 1 << 16


class Door:
    """An asyncio server on loopback in a thread of its own; `serve` takes one connection, and keeps the writers that
    ``cut`` ends in `writers`."""

    port = None

    def __init__(self):
        self.door, self.writers, self.ready = None, set(), threading.Event()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        self.ready.wait()
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def cut(self):
        """Ends every connection; whoever wants one asks again."""
        self.loop.call_soon_threadsafe(self.abort)

    def abort(self):
        for each in self.writers:
            each.transport.abort()

    async def open(self):
        self.door = await asyncio.start_server(self.serve, "127.0.0.1", self.port or 0)
        self.port = self.door.sockets[0].getsockname()[1]

    def run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self.open())
        self.ready.set()
        self.loop.run_forever()
        self.door.close()
        for each in asyncio.all_tasks(self.loop):
            each.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    async def join(self, reader, writer, far_reader, far_writer):
        """Carries bytes both ways until both have ended."""
        ends = {writer, far_writer}
        self.writers |= ends
        try:
            await asyncio.gather(pour(reader, far_writer), pour(far_reader, writer))
        finally:
            self.writers -= ends


class Proxy(Door):
    """`asked` holds what it was asked for: name, port, credentials; a word of its own for what it refuses."""

    def __init__(self, routes, leaf, key):
        """`routes`: (name, port) → local port. TLS to port 443 ends here, by the certificate."""
        super().__init__()
        self.routes, self.asked = routes, []
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(leaf, key)

    async def serve(self, reader, writer):
        with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
            route = await self.greet(reader, writer)
            if route is None:
                return writer.close()
            port, has_tls = route
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"\x05\x00\x00\x01" + bytes(6))
            await writer.drain()
            if has_tls:
                await writer.start_tls(self.tls)
            await self.join(reader, writer, far_reader, far_writer)

    async def greet(self, reader, writer):
        """The local port and whether TLS ends here; `None` when the demand is refused."""
        version, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        if version != 5 or CREDENTIALS not in methods:
            self.asked.append(("without credentials", None, None))
            writer.write(b"\x05\xff")
            return None
        writer.write(bytes([5, CREDENTIALS]))
        user = await reader.readexactly((await reader.readexactly(2))[1])
        word = await reader.readexactly((await reader.readexactly(1))[0])
        writer.write(b"\x01\x00")
        kind = (await reader.readexactly(4))[3]
        if kind != NAME:
            self.asked.append((f"by an address of kind {kind}", None, None))
            writer.write(b"\x05\x08\x00\x01" + bytes(6))
            return None
        name = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.asked.append((name, port, (user, word)))
        if (name, port) not in self.routes:
            writer.write(b"\x05\x04\x00\x01" + bytes(6))
            return None
        return self.routes[name, port], port == TLS_PORT


async def pour(source, sink):
    with contextlib.suppress(OSError):
        while piece := await source.read(PIECE):
            sink.write(piece)
            await sink.drain()
    sink.close()
