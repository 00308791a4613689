import CNghttp2

/// A session's calls to its connection. All of them come from inside ``HTTP2ServerSession/receive(_:)`` or
/// ``HTTP2ServerSession/drain(_:)``; only `received` may ask the session to send.
protocol HTTP2ServerSessionEvents: AnyObject {
    /// A request's header fields are complete; a body may follow.
    func opened(_ stream: Int32)
    /// A request is complete.
    func received(_ request: SimulatedRequest, on stream: Int32)
    /// `bytes` of body arrived: they are consumed when the connection says so.
    func receivedBody(_ bytes: Int, on stream: Int32)
    func receivedPing(_ opaque: [UInt8])
    func receivedSettingsAcknowledgement()
    func closed(_ stream: Int32)
}

/// The server's side of one HTTP/2 connection (RFC 9113) on libnghttp2, without a socket: bytes in, bytes
/// out.
///
/// The connection, and not the library, answers PING, opens windows and keeps stream limits, so that a test
/// can make it misbehave. It belongs to one event loop.
final class HTTP2ServerSession {
    weak var events: (any HTTP2ServerSessionEvents)?
    private var session: OpaquePointer?
    fileprivate var streams: [Int32: Stream] = [:]
    /// The stream whose header fields are being read; only one at a time is.
    fileprivate var current: (id: Int32, request: SimulatedRequest)?
    /// Requests that ended in the bytes being read. They are reported after the library has returned, because
    /// sending may end a stream, and the library must not be asked to send from inside one of its own calls.
    private var complete: [Int32] = []
    private var pool: [SimulatedRequest] = []
    /// The library gets no stream limit; the limit on the wire is written into its SETTINGS frames, in order.
    private var announced: [UInt32] = []
    /// Consumed bytes of the connection's window that are not yet returned.
    private var consumedBytes = 0

    fileprivate final class Stream {
        let request: SimulatedRequest
        var answer: [UInt8] = []
        var sent = 0
        init(_ request: SimulatedRequest) { self.request = request }
    }

    /// How many request objects are kept for later streams.
    private static let pooled = 64
    /// The stream limit that the library uses internally; it is never on the wire.
    private static let unboundedStreams: UInt32 = 1 << 20

    init() {
        var callbacks: OpaquePointer?
        nghttp2_session_callbacks_new(&callbacks)
        defer { nghttp2_session_callbacks_del(callbacks) }
        Self.install(callbacks)
        var options: OpaquePointer?
        nghttp2_option_new(&options)
        defer { nghttp2_option_del(options) }
        nghttp2_option_set_no_auto_window_update(options, 1)
        nghttp2_option_set_no_auto_ping_ack(options, 1)
        nghttp2_option_set_no_closed_streams(options, 1)
        // A sender under test resets every stream that we never answer; here that is not an attack.
        nghttp2_option_set_stream_reset_rate_limit(options, 1_000_000, 1_000_000)
        nghttp2_session_server_new2(&session, callbacks, Unmanaged.passUnretained(self).toOpaque(), options)
    }

    deinit { nghttp2_session_del(session) }

    /// Feeds bytes from the peer. False: the peer broke the protocol beyond repair, or the session has ended.
    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let base = bytes.baseAddress else { return true }
        let count = nghttp2_session_mem_recv(session, base.assumingMemoryBound(to: UInt8.self), bytes.count)
        for id in complete {
            // The peer may have reset it after its end.
            if let stream = streams[id] { events?.received(stream.request, on: id) }
        }
        complete.removeAll(keepingCapacity: true)
        return count == bytes.count
    }

    /// Lends what the session wants to send next, frame by frame; stops if there is nothing, or on a fault.
    func drain(_ take: (UnsafeRawBufferPointer) -> Void) {
        if consumedBytes > 0 {
            nghttp2_submit_window_update(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, Int32(clamping: consumedBytes))
            consumedBytes = 0
        }
        while true {
            var data: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &data)
            guard count > 0, let data else { return }
            let frame = UnsafeRawBufferPointer(start: data, count: count)
            if frame.count >= 9, frame[3] == UInt8(NGHTTP2_SETTINGS.rawValue), frame[4] & 1 == 0,
                !announced.isEmpty
            {
                var patched = Array(frame)
                Self.write(streams: announced.removeFirst(), into: &patched)
                patched.withUnsafeBytes(take)
            } else {
                take(frame)
            }
        }
    }

    var isOver: Bool { nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0 }
    var openStreams: Int { streams.count }

    /// Sends SETTINGS with a stream limit and other pairs of id and value.
    func submitSettings(streams limit: UInt32, _ others: [(UInt32, UInt32)] = []) {
        var entries = [
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue),
                value: Self.unboundedStreams)
        ]
        entries += others.map { nghttp2_settings_entry(settings_id: Int32($0.0), value: $0.1) }
        announced.append(limit)
        nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count)
    }

    func submitPingAnswer(_ opaque: [UInt8]) {
        nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_ACK.rawValue), opaque)
    }

    func submitReset(_ stream: Int32, code: UInt32) {
        nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, code)
    }

    func submitGoAway(lastStream: Int32, code: UInt32, debugData: String?) {
        let debug = Array((debugData ?? "").utf8)
        nghttp2_submit_goaway(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), lastStream, code, debug, debug.count)
    }

    /// GOAWAY with 2³¹−1: a warning (RFC 9113 §6.8).
    func submitShutdownNotice() { nghttp2_submit_shutdown_notice(session) }

    func consume(_ bytes: Int, on stream: Int32) {
        consumeConnection(bytes)
        consumeStream(bytes, on: stream)
    }
    /// If the stream has ended, only the connection's window is still to be opened.
    ///
    /// The library would return a connection's window only once half of it is used, and so withhold the other
    /// half for ever from a sender that fills it. So consumed bytes are returned with the next write.
    func consumeConnection(_ bytes: Int) { consumedBytes += bytes }
    func consumeStream(_ bytes: Int, on stream: Int32) {
        nghttp2_session_consume_stream(session, stream, bytes)
    }

    /// Sends the answer to a request. A stream that is gone is ignored.
    func submitAnswer(_ answer: SimulatedAnswer, on id: Int32) {
        guard let stream = streams[id] else { return }
        stream.answer = answer.body
        var fields = FieldList(status: answer.status)
        if !answer.apnsID.isEmpty { fields.add("apns-id", answer.apnsID) }
        if !answer.uniqueID.isEmpty { fields.add("apns-unique-id", answer.uniqueID) }
        if let type = answer.contentType { fields.add("content-type", Array(type.utf8)) }
        if let after = answer.retryAfter { fields.add("retry-after", Array(after.utf8)) }
        fields.lend { list in
            guard !answer.body.isEmpty else {
                nghttp2_submit_response(session, id, list.baseAddress, list.count, nil)
                return
            }
            var provider = nghttp2_data_provider(source: .init(ptr: nil), read_callback: Self.readAnswer)
            nghttp2_submit_response(session, id, list.baseAddress, list.count, &provider)
        }
    }

    private static func write(streams: UInt32, into frame: inout [UInt8]) {
        var at = 9
        while at + 6 <= frame.count {
            if frame[at] == 0, frame[at + 1] == UInt8(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue) {
                withUnsafeBytes(of: streams.bigEndian) { frame.replaceSubrange(at + 2..<at + 6, with: $0) }
            }
            at += 6
        }
    }

    // MARK: callbacks

    private static func install(_ callbacks: OpaquePointer?) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, user in
            me(user).began(frame!.pointee.hd.stream_id)
            return 0
        }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameCount, value, count, _, user in
            guard let current = me(user).current, current.id == frame!.pointee.hd.stream_id else { return 0 }
            current.request.add(
                name: .init(start: name, count: nameCount), value: .init(start: value, count: count))
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _, _, stream, data, count, user in
            me(user).receivedBody(.init(start: data, count: count), on: stream)
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, user in
            me(user).received(frame!)
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, _, user in
            me(user).closed(stream)
            return 0
        }
    }

    private static let readAnswer: nghttp2_data_source_read_callback = {
        _, id, buffer, room, flags, _, user in
        guard let stream = me(user).streams[id] else {
            return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
        }
        let count = min(room, stream.answer.count - stream.sent)
        stream.answer.withUnsafeBytes { bytes in
            UnsafeMutableRawBufferPointer(start: buffer, count: room)
                .copyMemory(from: .init(rebasing: bytes[stream.sent..<stream.sent + count]))
        }
        stream.sent += count
        if stream.sent == stream.answer.count { flags!.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        return count
    }

    fileprivate func began(_ id: Int32) {
        let stream = streams[id] ?? Stream(pool.popLast() ?? SimulatedRequest())
        streams[id] = stream
        current = (id, stream.request)
    }

    fileprivate func receivedBody(_ bytes: UnsafeBufferPointer<UInt8>, on id: Int32) {
        streams[id]?.request.append(bytes)
        events?.receivedBody(bytes.count, on: id)
    }

    fileprivate func received(_ frame: UnsafePointer<nghttp2_frame>) {
        let head = frame.pointee.hd
        let isEnd = UInt32(head.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0
        switch UInt32(head.type) {
        case NGHTTP2_HEADERS.rawValue:
            if frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST { events?.opened(head.stream_id) }
            if isEnd { complete.append(head.stream_id) }
        case NGHTTP2_DATA.rawValue:
            if isEnd { complete.append(head.stream_id) }
        case NGHTTP2_PING.rawValue:
            guard UInt32(head.flags) & NGHTTP2_FLAG_ACK.rawValue == 0 else { return }
            events?.receivedPing(withUnsafeBytes(of: frame.pointee.ping.opaque_data) { Array($0) })
        case NGHTTP2_SETTINGS.rawValue:
            if UInt32(head.flags) & NGHTTP2_FLAG_ACK.rawValue != 0 {
                events?.receivedSettingsAcknowledgement()
            }
        default:
            break
        }
    }

    fileprivate func closed(_ id: Int32) {
        guard let stream = streams.removeValue(forKey: id) else { return }
        if current?.id == id { current = nil }
        if pool.count < Self.pooled {
            stream.request.reset()
            pool.append(stream.request)
        }
        events?.closed(id)
    }
}

/// The session that a callback belongs to; it was handed to the library by `nghttp2_session_server_new2`.
private func me(_ user: UnsafeMutableRawPointer?) -> HTTP2ServerSession {
    Unmanaged<HTTP2ServerSession>.fromOpaque(user!).takeUnretainedValue()
}

/// The fields of an answer in one buffer, lent as the library's name-value list.
private struct FieldList {
    private var bytes: [UInt8] = []
    private var lengths: [(name: Int, value: Int)] = []

    init(status: Int) {
        bytes.reserveCapacity(160)
        add(":status", Array(String(status).utf8))
    }

    mutating func add(_ name: StaticString, _ value: [UInt8]) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        bytes.append(contentsOf: value)
        lengths.append((name.utf8CodeUnitCount, value.count))
    }

    mutating func lend(_ body: (UnsafeBufferPointer<nghttp2_nv>) -> Void) {
        let lengths = lengths
        bytes.withUnsafeMutableBufferPointer { bytes in
            withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: lengths.count) { list in
                var at = 0
                for (index, length) in lengths.enumerated() {
                    // Ids differ in every answer, and would only push other fields out of the peer's table.
                    let flags = index == 0 ? NGHTTP2_NV_FLAG_NONE.rawValue : NGHTTP2_NV_FLAG_NO_INDEX.rawValue
                    list.initializeElement(
                        at: index,
                        to: nghttp2_nv(
                            name: bytes.baseAddress! + at, value: bytes.baseAddress! + at + length.name,
                            namelen: length.name, valuelen: length.value, flags: UInt8(flags)))
                    at += length.name + length.value
                }
                body(UnsafeBufferPointer(list))
            }
        }
    }
}
