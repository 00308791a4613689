"""Runs the relay inside PyPI's nostr-sdk until it is ended. Usage: nostr_local_relay.py PORT [auth]"""
import asyncio
import sys

from nostr_sdk import LocalRelayBuilder, LocalRelayBuilderNip42, LocalRelayBuilderNip42Mode


async def main():
    builder = LocalRelayBuilder().addr("127.0.0.1").port(int(sys.argv[1]))
    if sys.argv[2:] == ["auth"]:
        builder = builder.nip42(LocalRelayBuilderNip42(mode=LocalRelayBuilderNip42Mode.BOTH))
    relay = builder.build()
    await relay.run()
    await asyncio.Event().wait()


asyncio.run(main())
