import CNghttp2
import NIOCore
import PushModel
import PushTesting
import Testing

@testable import HTTP2Client

/// What answers leave behind on a connection that is kept for weeks (decision 0105).
@Suite("Answers of push services do not stay", .timeLimit(.minutes(30)))
struct InboundWipingTests {
    private static let said = Array("a-reason-that-nobody-else-gives".utf8)
    private static let named = Array("0f1e2d3c-unique-id-of-a-push".utf8)

    /// `name: value`, kept in the table of the connection (RFC 7541 §6.2.1).
    private static func kept(_ name: String, _ value: [UInt8]) -> [UInt8] {
        [0x40, UInt8(name.utf8.count)] + Array(name.utf8) + [UInt8(value.count)] + value
    }

    /// Keeps all that a connection reads: the memory, no copy of it.
    private final class Witness: ChannelInboundHandler, @unchecked Sendable {
        // Safety: touched on the connection's event loop alone.
        typealias InboundIn = ByteBuffer
        typealias InboundOut = ByteBuffer
        private(set) var arrived: [ByteBuffer] = []

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            arrived.append(unwrapInboundIn(data))
            context.fireChannelRead(data)
        }
    }

    @Test("What TLS has read into is wiped by the time the answer is there")
    func buffers() async throws {
        var script = RawPeer.Script()
        script.requested = { connection, stream, _, _ in
            connection.send(
                RawHTTP2Frame(
                    kind: RawHTTP2Frame.Kind.headers, flags: 4, stream: stream,
                    payload: [0x88] + Self.kept("apns-unique-id", Self.named)))
            connection.send(
                RawHTTP2Frame(kind: RawHTTP2Frame.Kind.data, flags: 1, stream: stream, payload: Self.said))
        }
        let peer = try await RawPeer(script)
        try await Client(port: peer.port).running { client in
            let slot = try await client.pool.reserve()
            let connection = slot.connection
            let witness = Witness()
            try await connection.eventLoop.submit {
                let context = try #require(connection.context)
                try context.pipeline.syncOperations.addHandler(
                    witness, position: .before(try #require(context.handler as? HTTP2Connection)))
            }.get()
            let answer = await client.pool.request(
                client.request(), on: slot, sendBefore: .now + .seconds(600))
            #expect(answer.status == 200 && answer.body == Self.said)
            let left = try await connection.eventLoop.submit {
                witness.arrived.map { Array($0.readableBytesView) }
            }.get()
            #expect(left.reduce(0) { $0 + $1.count } > Self.said.count + Self.named.count)
            #expect(left.allSatisfy { $0.allSatisfy { $0 == 0 } })
        }
        try await peer.close()
    }

    @Test("A field that the peer has kept in the table stands there without its value, and breaks no answer")
    func table() async throws {
        // The second answer names the first one's fields by their numbers: `apns-unique-id`, then `te`.
        var script = RawPeer.Script()
        script.requested = { connection, stream, _, number in
            let fields =
                number == 1
                ? Self.kept("te", Array("trailers".utf8)) + Self.kept("apns-unique-id", Self.named)
                : [0xBE, 0xBF]
            connection.send(
                RawHTTP2Frame(
                    kind: RawHTTP2Frame.Kind.headers, flags: 5, stream: stream, payload: [0x88] + fields))
        }
        let peer = try await RawPeer(script)
        try await Client(port: peer.port).running { client in
            for _ in 0..<3 {
                let answer = try await client.send(client.request())
                #expect(answer.status == 200)
            }
        }
        try await peer.close()
        #expect(
            try Self.values([[0x88] + Self.kept("apns-unique-id", Self.named), [0x88, 0xBE]]) == [
                Self.named, [UInt8](repeating: UInt8(ascii: "0"), count: Self.named.count)
            ])
        // What is read stays as it is.
        for name in ["retry-after", "content-length"] {
            let digits = Array("120".utf8)
            #expect(try Self.values([[0x88] + Self.kept(name, digits), [0x88, 0xBE]]) == [digits, digits])
        }
    }

    private final class Heard { var values: [[UInt8]] = [] }

    /// What a session says of the field behind `:status` in each answer, forgotten behind each.
    private static func values(_ blocks: [[UInt8]]) throws -> [[UInt8]] {
        var callbacks: OpaquePointer?
        nghttp2_session_callbacks_new(&callbacks)
        defer { nghttp2_session_callbacks_del(callbacks) }
        nghttp2_session_callbacks_set_on_header_callback2(callbacks) { _, _, name, value, _, user in
            let field = HTTP2AnswerField(name, value)
            if field.name.first != UInt8(ascii: ":"), let user {
                Unmanaged<Heard>.fromOpaque(user).takeUnretainedValue().values.append(Array(field.value))
            }
            field.forget()
            return 0
        }
        let heard = Heard()
        var session: OpaquePointer?
        nghttp2_session_client_new(&session, callbacks, Unmanaged.passUnretained(heard).toOpaque())
        defer { nghttp2_session_del(session) }
        func receive(_ kind: UInt8, _ flags: UInt8, _ stream: UInt8, _ payload: [UInt8]) {
            let frame = [0, 0, UInt8(payload.count), kind, flags, 0, 0, 0, stream] + payload
            #expect(nghttp2_session_mem_recv(session, frame, frame.count) == frame.count)
        }
        receive(RawHTTP2Frame.Kind.settings, 0, 0, [])
        for (number, block) in blocks.enumerated() {
            submit(session)
            var chunk: UnsafePointer<UInt8>?
            while nghttp2_session_mem_send(session, &chunk) > 0 {}
            receive(RawHTTP2Frame.Kind.headers, 4, UInt8(2 * number + 1), block)
        }
        return withExtendedLifetime(heard) { heard.values }
    }

    private static func submit(_ session: OpaquePointer?) {
        var (name, value) = (Array(":method".utf8), Array("GET".utf8))
        name.withUnsafeMutableBufferPointer { name in
            value.withUnsafeMutableBufferPointer { value in
                var field = nghttp2_nv(
                    name: name.baseAddress, value: value.baseAddress, namelen: name.count,
                    valuelen: value.count, flags: 0)
                nghttp2_submit_request(session, nil, &field, 1, nil, nil)
            }
        }
    }
}
