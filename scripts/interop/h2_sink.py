"""A push service that only judges: an HTTP/2 server over TLS on PyPI's `h2`, an implementation of its own.

It answers 200 to every request, counts them by their own names, and writes down what a push service, or RFC 9113
as `h2` reads it, would object to: a window overrun, a stream too many, a frame out of order.

Usage: h2_sink.py --cert FILE --key FILE --ready FILE --report FILE [--service apns|fcm]
    --limits 100,1,20        MAX_CONCURRENT_STREAMS, the next one after every 50 answers
    --windows 65535,1000     INITIAL_WINDOW_SIZE, likewise
    --header-table BYTES     HEADER_TABLE_SIZE
    --credit-after MS        window is given back so long after the bytes came, not at once
    --goaway-every N         GOAWAY after so many answers of a connection …
    --goaway drop|keep|grace … naming the stream just answered, so that younger ones in flight are not looked at;
                             naming the youngest; or 2³¹−1 first and the youngest a little later
    --early-every N          every Nth request is answered before its body has come, then RST_STREAM(NO_ERROR)

It writes its port into the ready file, ends on SIGTERM, and writes the report as JSON.
"""
import argparse
import asyncio
import os
import signal
import ssl

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
from h2.settings import SettingCodes, Settings
from hyperframe.frame import GoAwayFrame

from judge import Report

# A little, so that several streams stand at once, as they do at a service far away.
ANSWER_AFTER_SECONDS = 0.005
# Between the two GOAWAYs of a graceful end: longer than a loopback round trip.
GRACE_SECONDS = 0.05
CHANGE_EVERY = 50
PING_EVERY = 200
BEYOND_ALL = (1 << 31) - 1


class Sink(asyncio.Protocol):
    """One connection."""

    def __init__(self, options, report):
        self.options, self.report = options, report
        self.streams = {}  # id → (fields, body)
        self.ended = []  # streams whose request is complete and not answered yet
        self.heads = 0
        self.answered = 0
        self.youngest = 0
        self.last = None  # the last stream id that GOAWAY promised to look at

    def connection_made(self, transport):
        self.transport = transport
        self.report.counts["connections"] += 1
        if transport.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
            self.report.fault("h2 was not agreed on by ALPN")
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding=None))
        self.limits, self.windows = list(self.options.limits), list(self.options.windows)
        self.h2.local_settings = Settings(client=False, initial_values={
            SettingCodes.MAX_CONCURRENT_STREAMS: self.limits[0],
            SettingCodes.INITIAL_WINDOW_SIZE: self.windows[0],
            SettingCodes.HEADER_TABLE_SIZE: self.options.header_table,
            SettingCodes.MAX_HEADER_LIST_SIZE: 16384})
        self.h2.initiate_connection()
        self.flush()

    def connection_lost(self, _):
        self.streams.clear()

    def data_received(self, data):
        try:
            events = self.h2.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            self.report.fault(f"protocol: {type(error).__name__}: {error}")
            self.flush()
            self.transport.close()
            return
        was_waiting = bool(self.ended)
        for event in events:
            self.take(event)
        self.report.judge_table(self.h2.decoder.header_table.dynamic_entries)
        self.flush()
        if self.ended and not was_waiting:
            asyncio.get_running_loop().call_later(ANSWER_AFTER_SECONDS, self.answer_all)

    def take(self, event):
        stream = getattr(event, "stream_id", None)
        if isinstance(event, h2.events.RequestReceived):
            self.begin(stream, event)
        elif isinstance(event, h2.events.DataReceived):
            if stream in self.streams:
                self.streams[stream][1].extend(event.data)
            self.give_back(event.flow_controlled_length, stream)
        elif isinstance(event, h2.events.StreamReset):
            if self.streams.pop(stream, None) is not None:
                self.report.fault(f"a stream was reset with code {int(event.error_code)}")
        elif isinstance(event, h2.events.StreamEnded) and stream in self.streams:
            self.ended.append(stream)
        elif isinstance(event, h2.events.RemoteSettingsChanged):
            if self.h2.remote_settings.enable_push:
                self.report.fault("server push is not switched off")
        elif isinstance(event, h2.events.PingAckReceived):
            self.report.counts["pongs"] += 1

    def begin(self, stream, event):
        if self.last is not None and stream > self.last:
            self.report.counts["dropped"] += 1
            return
        self.heads += 1
        self.youngest = max(self.youngest, stream)
        self.streams[stream] = (self.report.judge_head(event.headers), bytearray())
        counts = self.report.counts
        counts["most_streams"] = max(counts["most_streams"], len(self.streams))
        every = self.options.early_every
        if every and self.heads % every == 0 and event.stream_ended is None:
            fields, body = self.streams.pop(stream)
            self.report.count(fields, bytes(body))
            counts["early"] += 1
            self.answered += 1
            self.h2.send_headers(stream, [(b":status", b"200")], end_stream=True)
            self.h2.reset_stream(stream, h2.errors.ErrorCodes.NO_ERROR)

    def give_back(self, length, stream):
        window = self.h2.inbound_flow_control_window
        least = self.report.least_window
        self.report.least_window = window if least is None else min(least, window)

        def credit():
            if not self.transport.is_closing():
                self.h2.acknowledge_received_data(length, stream)
                self.flush()
        if self.options.credit_after:
            asyncio.get_running_loop().call_later(self.options.credit_after / 1000, credit)
        else:
            self.h2.acknowledge_received_data(length, stream)

    def answer_all(self):
        ended, self.ended = self.ended, []
        for stream in ended:
            if stream in self.streams and not self.transport.is_closing():
                self.answer(stream)
        self.flush()
        self.end_if_done()

    def answer(self, stream):
        fields, body = self.streams.pop(stream)
        self.report.judge_body(fields, bytes(body))
        self.report.count(fields, bytes(body))
        self.answered += 1
        text = b"" if self.options.service == "apns" else b'{"name":"projects/p/messages/1"}'
        self.h2.send_headers(stream, [(b":status", b"200")], end_stream=not text)
        if text:
            self.h2.send_data(stream, text, end_stream=True)
        every = self.options.goaway_every
        # A goodbye that drops waits for a younger stream that it can drop.
        can_say = self.options.goaway != "drop" or any(name > stream for name in self.streams)
        if every and self.answered >= every and self.last is None and can_say:
            self.say_goodbye(stream)
        elif self.answered % CHANGE_EVERY == 0:
            self.change()
        if self.answered % PING_EVERY == 0:
            self.h2.ping(b"sealbell")
            self.report.counts["pings"] += 1

    def change(self):
        changed = {}
        if len(self.limits) > 1:
            self.limits.append(self.limits.pop(0))
            changed[SettingCodes.MAX_CONCURRENT_STREAMS] = self.limits[0]
        if len(self.windows) > 1:
            self.windows.append(self.windows.pop(0))
            changed[SettingCodes.INITIAL_WINDOW_SIZE] = self.windows[0]
        if changed:
            self.report.counts["limits_changed"] += 1
            self.h2.update_settings(changed)

    def say_goodbye(self, stream):
        self.report.counts["goaways"] += 1
        if self.options.goaway == "grace":
            self.last = BEYOND_ALL
            self.go_away(BEYOND_ALL)
            asyncio.get_running_loop().call_later(GRACE_SECONDS, self.finish_grace)
            return
        self.last = stream if self.options.goaway == "drop" else max([stream, *self.streams])
        for dropped in [name for name in self.streams if name > self.last]:
            self.report.counts["dropped"] += 1
            del self.streams[dropped]
        self.go_away(self.last)

    def finish_grace(self):
        if self.transport.is_closing():
            return
        self.last = self.youngest
        self.go_away(self.last)
        self.end_if_done()

    def go_away(self, last):
        # h2's own close_connection would take nothing more of the streams that are still to be answered.
        self.flush()
        self.transport.write(GoAwayFrame(0, last_stream_id=last, error_code=0).serialize())

    def end_if_done(self):
        if self.last is not None and self.last != BEYOND_ALL and not self.streams:
            self.transport.close()

    def flush(self):
        data = self.h2.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)


def numbers(text):
    return [int(part) for part in text.split(",")]


async def main():
    parser = argparse.ArgumentParser()
    for name in ("cert", "key", "ready", "report"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--service", default="apns", choices=["apns", "fcm"])
    parser.add_argument("--limits", default="100", type=numbers)
    parser.add_argument("--windows", default="65535", type=numbers)
    parser.add_argument("--header-table", type=int, default=4096)
    parser.add_argument("--credit-after", type=int, default=0)
    parser.add_argument("--goaway-every", type=int, default=0)
    parser.add_argument("--goaway", default="keep", choices=["drop", "keep", "grace"])
    parser.add_argument("--early-every", type=int, default=0)
    options = parser.parse_args()

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(options.cert, options.key)
    tls.set_alpn_protocols(["h2"])
    report = Report(options.service)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Sink(options, report), "127.0.0.1", 0, ssl=tls)
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    port = server.sockets[0].getsockname()[1]
    report.authority = f"127.0.0.1:{port}"
    with open(options.ready + ".part", "w", encoding="utf-8") as out:
        out.write(str(port))
    os.rename(options.ready + ".part", options.ready)
    await ended.wait()
    server.close()
    with open(options.report, "w", encoding="utf-8") as out:
        out.write(report.text())


asyncio.run(main())
