"""A push service that only judges: an HTTP/2 server over TLS on PyPI's `h2`, an implementation of its own.

It answers 200 to every request, counts them by `apns-id`, and writes down what a push service would object to.
It can shorten the number of streams it allows, and say GOAWAY after every so many requests: what arrives on that
connection afterwards is not looked at, as the last stream id told the client.

Usage: h2_sink.py --cert FILE --key FILE --ready FILE --report FILE [--service apns|fcm]
                  [--goaway-every N] [--limits 100,1,20] [--window BYTES]

It writes its port into the ready file, ends on SIGTERM, and writes the report as JSON.
"""
import argparse
import asyncio
import base64
import collections
import json
import os
import re
import signal
import ssl
import uuid

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings
from hpack import NeverIndexedHeaderTuple
from hyperframe.frame import GoAwayFrame

PUSH_TYPES = {"alert", "background", "voip", "complication", "fileprovider", "mdm", "liveactivity", "location",
              "pushtotalk", "widgets", "controls"}
BODY_LIMIT = 4096
BODY_LIMIT_VOIP = 5120
# A little, so that several streams stand at once, as they do at a service far away.
ANSWER_AFTER_SECONDS = 0.005


class Report:
    """What has been seen over all connections."""

    def __init__(self, service):
        self.service = service
        self.requests = 0
        self.connections = 0
        self.goaways = 0
        self.most_streams = 0
        self.ids = collections.Counter()
        self.faults = collections.Counter()

    def judge(self, headers, body):
        self.requests += 1
        fields = {}
        hidden = set()
        regular = False
        for header in headers:
            name, value = header[0].decode(), header[1].decode("latin-1")
            if name in fields:
                self.faults[f"{name} twice"] += 1
            fields[name] = value
            if isinstance(header, NeverIndexedHeaderTuple):
                hidden.add(name)
            if name.startswith(":") and regular:
                self.faults["pseudo header after a regular one"] += 1
            regular = regular or not name.startswith(":")
        if fields.get(":method") != "POST":
            self.faults[":method is not POST"] += 1
        if fields.get(":scheme") != "https":
            self.faults[":scheme is not https"] += 1
        if "authorization" not in hidden:
            self.faults["authorization may be indexed"] += 1
        length = fields.get("content-length")
        if length is not None and length != str(len(body)):
            self.faults["content-length is not the body's"] += 1
        try:
            message = json.loads(body)
        except ValueError:
            self.faults["body is not JSON"] += 1
            return
        if self.service == "apns":
            self.judge_apns(fields, hidden, body, message)
        else:
            self.judge_fcm(fields, message)

    def judge_apns(self, fields, hidden, body, message):
        if not re.fullmatch(r"/3/device/([0-9a-fA-F]{2})+", fields.get(":path", "")):
            self.faults[":path is not /3/device/HEX"] += 1
        if ":path" not in hidden:
            self.faults[":path may be indexed"] += 1
        name = fields.get("apns-id", "")
        self.ids[name.lower()] += 1
        try:
            uuid.UUID(name)
        except ValueError:
            self.faults["apns-id is no UUID"] += 1
        if not fields.get("apns-topic"):
            self.faults["apns-topic is missing"] += 1
        push_type = fields.get("apns-push-type")
        if push_type not in PUSH_TYPES:
            self.faults["apns-push-type is missing or unknown"] += 1
        if fields.get("apns-priority", "10") not in {"10", "5", "1"}:
            self.faults["apns-priority is not 10, 5 or 1"] += 1
        if push_type == "background" and fields.get("apns-priority") == "10":
            self.faults["background push with priority 10"] += 1
        if len(body) > (BODY_LIMIT_VOIP if push_type == "voip" else BODY_LIMIT):
            self.faults["body is too long"] += 1
        if not isinstance(message, dict) or "aps" not in message:
            self.faults["body has no aps"] += 1
        self.judge_token(fields.get("authorization", ""))

    def judge_token(self, value):
        parts = value.removeprefix("bearer ").removeprefix("Bearer ").split(".")
        if len(parts) != 3:
            self.faults["authorization is no JWT"] += 1
            return
        try:
            head, claims = (json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in parts[:2])
        except ValueError:
            self.faults["authorization is no JWT"] += 1
            return
        if head.get("alg") != "ES256" or "kid" not in head:
            self.faults["JWT head lacks alg ES256 or kid"] += 1
        if "iss" not in claims or not isinstance(claims.get("iat"), int):
            self.faults["JWT claims lack iss or a whole iat"] += 1

    def judge_fcm(self, fields, message):
        if not re.fullmatch(r"/v1/projects/[^/]+/messages:send", fields.get(":path", "")):
            self.faults[":path is not /v1/projects/P/messages:send"] += 1
        if not fields.get("authorization", "").lower().startswith("bearer "):
            self.faults["authorization is no bearer"] += 1
        inner = message.get("message") if isinstance(message, dict) else None
        if not isinstance(inner, dict) or not ({"token", "fid"} & inner.keys()):
            self.faults["message has no address"] += 1
        elif any(not isinstance(value, str) for value in inner.get("data", {}).values()):
            self.faults["a data value is no string"] += 1

    def text(self):
        ids = {name: count for name, count in self.ids.items() if count > 1}
        return json.dumps({
            "requests": self.requests, "distinct": len(self.ids), "doubled": sum(ids.values()) - len(ids),
            "connections": self.connections, "goaways": self.goaways, "most_streams": self.most_streams,
            "faults": dict(self.faults)})


class Sink(asyncio.Protocol):
    """One connection."""

    def __init__(self, options, report):
        self.options, self.report = options, report
        self.streams = {}
        self.ended = []  # streams whose request is complete and not answered yet
        self.answered = 0
        self.last = None  # the last stream id that GOAWAY promised to look at

    def connection_made(self, transport):
        self.transport = transport
        self.report.connections += 1
        config = h2.config.H2Configuration(client_side=False, header_encoding=None)
        self.h2 = h2.connection.H2Connection(config)
        self.limits = list(self.options.limits)
        self.h2.local_settings = h2.settings.Settings(client=False, initial_values={
            h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: self.limits[0],
            h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: self.options.window,
            h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: 16384})
        self.h2.initiate_connection()
        self.flush()

    def data_received(self, data):
        try:
            events = self.h2.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            self.report.faults["protocol: " + type(error).__name__] += 1
            self.flush()
            self.transport.close()
            return
        was_waiting = bool(self.ended)
        for event in events:
            self.take(event)
        self.flush()
        if self.ended and not was_waiting:
            asyncio.get_running_loop().call_later(ANSWER_AFTER_SECONDS, self.answer_all)

    def answer_all(self):
        ended, self.ended = self.ended, []
        for stream in ended:
            if stream in self.streams and not self.transport.is_closing():
                self.answer(stream)
        self.flush()
        if self.last is not None and not self.streams:
            self.transport.close()

    def take(self, event):
        stream = getattr(event, "stream_id", None)
        if isinstance(event, h2.events.RequestReceived):
            if self.last is not None and stream > self.last:
                return
            self.streams[stream] = (event.headers, bytearray())
            self.report.most_streams = max(self.report.most_streams, len(self.streams))
        elif isinstance(event, h2.events.DataReceived):
            if stream in self.streams:
                self.streams[stream][1].extend(event.data)
            self.h2.acknowledge_received_data(event.flow_controlled_length, stream)
        elif isinstance(event, h2.events.StreamReset):
            self.streams.pop(stream, None)
        elif isinstance(event, h2.events.StreamEnded) and stream in self.streams:
            self.ended.append(stream)

    def answer(self, stream):
        headers, body = self.streams.pop(stream)
        self.report.judge(headers, bytes(body))
        self.answered += 1
        text = b"" if self.options.service == "apns" else b'{"name":"projects/p/messages/1"}'
        self.h2.send_headers(stream, [(b":status", b"200")], end_stream=not text)
        if text:
            self.h2.send_data(stream, text, end_stream=True)
        every = self.options.goaway_every
        if every and self.answered >= every and self.last is None:
            # Streams already begun are still answered; newer ones were promised not to be looked at.
            self.last = max([stream, *self.streams])
            self.flush()
            self.transport.write(GoAwayFrame(0, last_stream_id=self.last, error_code=0).serialize())
            self.report.goaways += 1
        elif len(self.limits) > 1 and self.answered % 50 == 0:
            self.limits.append(self.limits.pop(0))
            self.h2.update_settings({h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: self.limits[0]})

    def flush(self):
        data = self.h2.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)


async def main():
    parser = argparse.ArgumentParser()
    for name in ("cert", "key", "ready", "report"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--service", default="apns", choices=["apns", "fcm"])
    parser.add_argument("--goaway-every", type=int, default=0)
    parser.add_argument("--limits", default="100", type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--window", default=65535, type=int)
    options = parser.parse_args()

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(options.cert, options.key)
    tls.set_alpn_protocols(["h2"])
    report = Report(options.service)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Sink(options, report), "127.0.0.1", 0, ssl=tls)
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    with open(options.ready + ".part", "w", encoding="utf-8") as out:
        out.write(str(server.sockets[0].getsockname()[1]))
    os.rename(options.ready + ".part", options.ready)
    await ended.wait()
    server.close()
    with open(options.report, "w", encoding="utf-8") as out:
        out.write(report.text())


asyncio.run(main())
