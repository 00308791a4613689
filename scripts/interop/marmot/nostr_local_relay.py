"""Runs the relay inside PyPI's nostr-sdk until it is ended. Usage: nostr_local_relay.py PORT [auth] [recipients]

`auth`: whoever reads or writes proves a key (NIP-42). `recipients`: wraps are shown to their `p` alone.
"""
import asyncio
import sys

from nostr_sdk import LocalRelayBuilder, LocalRelayBuilderNip42, LocalRelayBuilderNip42Mode, RateLimit

# Of one connection; by itself it takes 60 events a minute.
EVENTS_PER_MINUTE = 60_000


async def main():
    builder = LocalRelayBuilder().addr("127.0.0.1").port(int(sys.argv[1]))
    builder = builder.rate_limit(RateLimit(max_reqs=500, notes_per_minute=EVENTS_PER_MINUTE))
    if "recipients" in sys.argv:
        builder = builder.auth_dm(True)
    if "auth" in sys.argv:
        builder = builder.nip42(LocalRelayBuilderNip42(mode=LocalRelayBuilderNip42Mode.BOTH))
    relay = builder.build()
    await relay.run()
    await asyncio.Event().wait()


asyncio.run(main())
