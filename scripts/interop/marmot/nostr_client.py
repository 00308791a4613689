"""PyPI's nostr-sdk as Marmot's sender and receiver. One job in JSON on standard input, its result on standard
output. In a process of its own, for the library may crash at the interpreter's end.

  wake     looks up the server's relays (kind 10050), wraps triggers and publishes them
  list     publishes a kind 10050 by a key
  read     fetches the wraps to a key and unwraps them
"""
import asyncio
import datetime
import json
import os
import sys
import time

import nostr_sdk as sdk

WAIT_SECONDS = 30
SPAN = datetime.timedelta(seconds=WAIT_SECONDS)
AT_ONCE = 32


async def joined(urls, keys=None):
    """A client at these relays; with keys it proves itself where it must."""
    builder = sdk.ClientBuilder()
    if keys:
        builder = builder.authenticator(sdk.SignerAuthenticator(keys))
    client = builder.build()
    for url in urls:
        await client.add_relay(sdk.RelayUrl.parse(url))
    await client.connect(SPAN)
    return client


def targets(urls):
    return sdk.SendEventTarget.to([sdk.RelayUrl.parse(url) for url in urls])


async def fetched(client, wanted, enough):
    """Events of a filter, asked for again until there are enough."""
    ends = time.monotonic() + WAIT_SECONDS
    while True:
        events = await client.fetch_events(sdk.ReqTarget.auto([wanted]), SPAN)
        if len(events) >= enough or time.monotonic() > ends:
            return events
        await asyncio.sleep(0.1)


def wrapped(server, trigger):
    """A gift wrap by the library's own code; unsealed, as the seed text draws it, by its NIP-44."""
    author = sdk.Keys.generate()
    inner = sdk.EventBuilder(sdk.Kind(446), trigger["content"]).tags([sdk.Tag.parse(tag) for tag in trigger["tags"]])
    if trigger["sealed"]:
        return sdk.nip59_make_gift_wrap(author, server, inner.finalize_unsigned(author.public_key()))
    once = sdk.Keys.generate()
    text = sdk.nip44_encrypt(once.secret_key(), server, inner.finalize(author).as_json(), sdk.Nip44Version.V2)
    before = sdk.Timestamp.from_secs(int(time.time()) - 100_000)
    return sdk.EventBuilder(sdk.Kind(1059), text).tags([sdk.Tag.public_key(server)]).custom_created_at(before) \
        .finalize(once)


async def wake(job):
    server = sdk.PublicKey.parse(job["server"])
    found = []
    if job["lookup"]:
        lookup = await joined(job["lookup"], sdk.Keys.generate() if job["proves"] else None)
        lists = await fetched(lookup, sdk.Filter().kind(sdk.Kind(10050)).author(server), 1)
        if not lists:
            return {"list": None}
        newest = max(lists, key=lambda event: event.created_at().as_secs())
        found = [str(url) for url in sdk.nip17_extract_relay_list(newest)]
        await lookup.shutdown()
    urls = job["to"] or found
    client = await joined(urls, sdk.Keys.generate() if job["proves"] else None)
    wraps = [wrapped(server, trigger) for trigger in job["triggers"]]
    sent = []

    async def one(wrap):
        told = await client.send_event(wrap, targets(urls))
        sent.append({"id": wrap.id().to_hex(), "taken": sorted(str(url) for url in told.success),
                     "refused": {str(url): why for url, why in told.failed.items()}})

    for at in range(0, len(wraps), AT_ONCE):
        await asyncio.gather(*(one(wrap) for wrap in wraps[at:at + AT_ONCE]))
    return {"list": found, "sent": sent}


async def publish_list(job):
    keys = sdk.Keys.parse(job["secret"])
    client = await joined(job["relays"], keys if job["proves"] else None)
    event = sdk.EventBuilder(sdk.Kind(10050), "").tags([sdk.Tag.parse(["relay", url]) for url in job["relays"]])
    told = await client.send_event(event.finalize(keys), targets(job["relays"]))
    return {"taken": len(told.success), "refused": list(told.failed.values())}


async def read(job):
    keys = sdk.Keys.parse(job["secret"])
    found = {}
    for url in job["relays"]:
        client = await joined([url], keys if job["proves"] else None)
        wanted = sdk.Filter().kind(sdk.Kind(1059)).pubkey(keys.public_key())
        found[url] = [opened(keys, event) for event in await fetched(client, wanted, job["count"])]
    return found


def opened(keys, event):
    """What lies in a wrap; the library checks ids and signatures, and throws where they are wrong."""
    if not event.verify():
        raise ValueError("the wrap's id or signature")
    told = {"id": event.id().to_hex(), "author": event.author().to_hex(),
            "tags": [tag.to_vec() for tag in event.tags()], "age": int(time.time()) - event.created_at().as_secs()}
    text = sdk.nip44_decrypt(keys.secret_key(), event.author(), event.content())
    if json.loads(text)["kind"] == 13:
        gift = sdk.UnwrappedGift.from_gift_wrap(keys, event)
        inner = json.loads(gift.rumor().as_json())
        return told | {"sealed": True, "by": gift.sender().to_hex(), "inner": inner}
    direct = sdk.Event.from_json(text)
    return told | {"sealed": False, "valid": direct.verify(), "by": direct.author().to_hex(),
                   "inner": json.loads(text)}


async def main():
    sdk.uniffi_set_event_loop(asyncio.get_running_loop())
    job = json.load(sys.stdin)
    print(json.dumps(await {"wake": wake, "list": publish_list, "read": read}[sys.argv[1]](job)), flush=True)
    # Not by the interpreter's own end, where the library crashes.
    os._exit(0)


asyncio.run(main())
