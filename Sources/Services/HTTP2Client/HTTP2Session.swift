import CBlocks
import CNghttp2
import NIOCore
import PushModel

/// libnghttp2's client session with its callbacks, which call back into the connection that owns it. It
/// writes its greeting before there is one, and takes nothing in until then.
///
/// Not thread-safe: it lives on one event loop. Memory handed to `submit` is read where it stands until the
/// frame is written, so the connection keeps the slot until its stream is closed.
final class HTTP2Session {
    private let raw: OpaquePointer
    private var fields: UnsafeMutablePointer<nghttp2_nv>
    private var fieldCapacity = 24
    /// Varying fields whose names this connection's table has seen, by position.
    private var namesPlanted: UInt8 = 0

    /// A session that has our preface and SETTINGS (ENABLE_PUSH 0) ready; `nil` when memory is short.
    init?() {
        var callbacks: OpaquePointer?
        guard nghttp2_session_callbacks_new(&callbacks) == 0, let callbacks else { return nil }
        defer { nghttp2_session_callbacks_del(callbacks) }
        Self.install(on: callbacks)
        var session: OpaquePointer?
        // A request takes a dozen blocks of a few sizes, which are kept; others come from the heap.
        _ = sealbell_blocks_begin()
        var memory = nghttp2_mem(
            mem_user_data: nil, malloc: sealbell_blocks_malloc, free: sealbell_blocks_free,
            calloc: sealbell_blocks_calloc, realloc: sealbell_blocks_realloc)
        guard nghttp2_session_client_new3(&session, callbacks, nil, nil, &memory) == 0, let session
        else { return nil }
        raw = session
        fields = .allocate(capacity: fieldCapacity)
        var settings = [
            nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0)
        ]
        guard nghttp2_submit_settings(raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), &settings, settings.count) == 0
        else { return nil }
    }

    deinit {
        nghttp2_session_del(raw)
        fields.deallocate()
    }

    /// From now on callbacks go to that connection, which keeps the session and outlives it.
    func belong(to owner: HTTP2Connection) {
        nghttp2_session_set_user_data(raw, Unmanaged.passUnretained(owner).toOpaque())
    }

    /// SETTINGS_MAX_CONCURRENT_STREAMS of the peer; `nil`: none named.
    var peerStreamLimit: Int? {
        let limit = nghttp2_session_get_remote_settings(raw, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
        return limit == UInt32.max ? nil : Int(limit)
    }

    /// The connection's send window in bytes; may be negative.
    var sendWindowBytes: Int { Int(nghttp2_session_get_remote_window_size(raw)) }

    /// Takes what was read. False when the peer broke the protocol beyond repair.
    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let start = bytes.bindMemory(to: UInt8.self).baseAddress else { return true }
        return nghttp2_session_mem_recv(raw, start, bytes.count) == bytes.count
    }

    /// Gives out what is to be written, at most a little over `limitBytes`, in blocks that do not grow: a
    /// growing block would be copied, and the old one wiped, each time, and unused memory is wiped at the
    /// end.
    ///
    /// - Parameter expectedBytes: the expected size of the whole: the first block has no more. What comes
    ///   beyond it gets four times as much as came before: each block is a TLS record, which costs more than
    ///   its room.
    /// - Returns: how many bytes, and whether there is more; `nil` on a fault of the session.
    func produce(
        limitBytes: Int, expectedBytes: Int, from allocator: ByteBufferAllocator, to put: (ByteBuffer) -> Void
    ) -> (bytes: Int, isMore: Bool)? {
        // Without memory yet.
        var (block, bytes) = (ByteBuffer(), 0)
        var isMore = true
        while bytes < limitBytes {
            var chunk: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(raw, &chunk)
            if count < 0 { return nil }
            guard count > 0, let chunk else {
                isMore = false
                break
            }
            if block.writableBytes < count {
                if block.readableBytes > 0 { put(block) }
                let room = min(max(expectedBytes, bytes * 4), Self.blockBytes)
                block = allocator.buffer(capacity: max(count, room))
            }
            block.writeBytes(UnsafeRawBufferPointer(start: chunk, count: count))
            bytes += count
            Self.wipeFrame(chunk, count)
        }
        if block.readableBytes > 0 { put(block) }
        return (bytes, isMore)
    }

    /// As much as a TLS record takes (RFC 8446 §5.1).
    private static let blockBytes = 1 << 14

    /// The session's frame buffer lives as long as the connection, and holds a token and a payload until the
    /// next frame is written over them. What it has handed out it does not read again.
    private static func wipeFrame(_ frame: UnsafePointer<UInt8>, _ count: Int) {
        // A frame's kind is its fourth byte: DATA, HEADERS, CONTINUATION. Other frames contain nothing
        // secret, and the greeting, which has a blank there, is in read-only memory.
        guard count > 9, frame[3] <= 1 || frame[3] == 9 else { return }
        wipe(UnsafeMutableRawBufferPointer(start: UnsafeMutablePointer(mutating: frame), count: count))
    }

    var isOver: Bool { nghttp2_session_want_read(raw) == 0 && nghttp2_session_want_write(raw) == 0 }

    /// Opens a stream. False when the session takes no more.
    func submit(_ slot: HTTP2Slot, _ request: HTTP2Request) -> Bool {
        let count = fill(request)
        var provider = nghttp2_data_provider()
        let reference = Unmanaged.passUnretained(slot).toOpaque()
        provider.source.ptr = reference
        provider.read_callback = { _, _, buffer, length, flags, source, user in
            guard let buffer, let flags, let slot = source?.pointee.ptr, let user else {
                return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)
            }
            let owner = Unmanaged<HTTP2Connection>.fromOpaque(user).takeUnretainedValue()
            let piece = owner.readBody(
                of: Unmanaged<HTTP2Slot>.fromOpaque(slot).takeUnretainedValue(),
                into: UnsafeMutableRawBufferPointer(start: buffer, count: length))
            switch piece {
            case .withheld: return Int(NGHTTP2_ERR_DEFERRED.rawValue)
            // The stream's RST_STREAM is queued already; this only takes its DATA back.
            case .cancelled: return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
            case .bytes(let count, let last):
                if last { flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
                return count
            }
        }
        let stream = nghttp2_submit_request(raw, nil, fields, count, &provider, reference)
        guard stream > 0 else { return false }
        slot.streamID = stream
        return true
    }

    func reset(_ stream: Int32) {
        nghttp2_submit_rst_stream(raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, NGHTTP2_CANCEL.rawValue)
    }

    func ping() { nghttp2_submit_ping(raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil) }

    /// Says GOAWAY and writes nothing after it.
    func terminate() { nghttp2_session_terminate_session(raw, NGHTTP2_NO_ERROR.rawValue) }

    /// Lays the request's fields out for the session, pseudo fields first (RFC 9113 §8.3). How many.
    private func fill(_ request: HTTP2Request) -> Int {
        let template = request.template
        if template.fieldLimit > fieldCapacity {
            fields.deallocate()
            fieldCapacity = template.fieldLimit
            fields = .allocate(capacity: fieldCapacity)
        }
        let stay = NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue | NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue
        let secret = stay | NGHTTP2_NV_FLAG_NO_INDEX.rawValue
        var count = 0
        func put(_ slice: HTTP2HeaderTemplate.Slice) {
            fields[count] = nghttp2_nv(
                name: slice.name, value: slice.value, namelen: slice.nameCount, valuelen: slice.valueCount,
                flags: UInt8(stay))
            count += 1
        }
        for slice in template.pseudo { put(slice) }
        var value = request.head.start
        let lengths = request.head.lengths
        for (position, varying) in template.varying.enumerated() {
            let length = Int(lengths[position])
            if length == 0 { continue }
            let plant = varying.indexing == .nameOnce && namesPlanted & (1 << UInt8(position)) == 0
            if plant { namesPlanted |= 1 << UInt8(position) }
            fields[count] = nghttp2_nv(
                name: varying.name, value: value, namelen: varying.nameCount, valuelen: length,
                flags: UInt8(plant ? stay : secret))
            count += 1
            value += length
            if position == 0 { for slice in template.fixed { put(slice) } }
        }
        if let authorization = request.authorization {
            fields[count] = nghttp2_nv(
                name: Self.authorizationName, value: authorization.bytes.baseAddress,
                namelen: Self.authorizationCount, valuelen: authorization.bytes.count, flags: UInt8(secret))
            count += 1
        }
        return count
    }

    // Safety: written once, read only.
    nonisolated(unsafe) private static let authorizationName: UnsafeMutablePointer<UInt8> = {
        let text = Array("authorization".utf8)
        let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: text.count)
        memory.initialize(from: text, count: text.count)
        return memory
    }()
    private static let authorizationCount = "authorization".utf8.count
}

extension HTTP2Session {
    private static func connection(_ user: UnsafeMutableRawPointer?) -> HTTP2Connection? {
        user.map { Unmanaged<HTTP2Connection>.fromOpaque($0).takeUnretainedValue() }
    }

    private static func slot(_ session: OpaquePointer?, _ stream: Int32) -> HTTP2Slot? {
        nghttp2_session_get_stream_user_data(session, stream).map {
            Unmanaged<HTTP2Slot>.fromOpaque($0).takeUnretainedValue()
        }
    }

    fileprivate static func install(on callbacks: OpaquePointer) {
        nghttp2_session_callbacks_set_on_header_callback2(callbacks) { session, frame, name, value, _, _ in
            let field = HTTP2AnswerField(name, value)
            // Looked at first: of the five fields or so of an answer one is kept.
            if let frame, HTTP2Slot.keeps(field.name),
                let slot = HTTP2Session.slot(session, frame.pointee.hd.stream_id)
            {
                slot.header(field.name, field.value)
            }
            field.forget()
            return 0
        }
        nghttp2_session_callbacks_set_on_invalid_header_callback2(callbacks) { _, _, name, value, _, _ in
            // It is passed over, as without this.
            HTTP2AnswerField(name, value).forget()
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            session, _, stream, bytes, count, user in
            guard let bytes, let slot = HTTP2Session.slot(session, stream) else { return 0 }
            HTTP2Session.connection(user)?.received(UnsafeBufferPointer(start: bytes, count: count), on: slot)
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { session, frame, user in
            guard let frame, let connection = HTTP2Session.connection(user) else { return 0 }
            HTTP2Session.received(frame.pointee, session, connection)
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { session, frame, _ in
            guard let frame, frame.pointee.hd.type == UInt8(NGHTTP2_HEADERS.rawValue) else { return 0 }
            HTTP2Session.slot(session, frame.pointee.hd.stream_id)?.written = true
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { session, stream, code, user in
            guard let slot = HTTP2Session.slot(session, stream) else { return 0 }
            HTTP2Session.connection(user)?.closed(slot, refused: code == NGHTTP2_REFUSED_STREAM.rawValue)
            return 0
        }
    }

    private static func received(
        _ frame: nghttp2_frame, _ session: OpaquePointer?, _ connection: HTTP2Connection
    ) {
        let head = frame.hd
        switch nghttp2_frame_type(UInt32(head.type)) {
        case NGHTTP2_HEADERS, NGHTTP2_DATA:
            guard head.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0,
                let slot = slot(session, head.stream_id)
            else { return }
            connection.answered(slot)
        case NGHTTP2_SETTINGS where head.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) == 0:
            connection.receivedSettings()
        case NGHTTP2_PING where head.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0:
            connection.receivedPong()
        case NGHTTP2_GOAWAY:
            connection.receivedGoaway()
        default:
            break
        }
    }
}

extension HTTP2Slot {
    /// Whether a field of that name may be one of those that ``header(_:_:)`` keeps.
    fileprivate static func keeps(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        name.first == UInt8(ascii: ":") || name.count == "retry-after".utf8.count
    }

    /// Keeps `:status` and `retry-after`; everything else that a push service says stands in the body.
    fileprivate func header(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        if value.count == 3, name.is(":status") {
            status = value.reduce(0) { $0 * 10 + Int($1 &- UInt8(ascii: "0")) }
        } else if value.count <= 64, name.is("retry-after") {
            retryAfter = Array(value)
        }
    }
}
