import NIOCore
import Testing

@testable import HTTP2Client

@Suite("What a session gives to be written", .timeLimit(.minutes(30)))
struct OutputTests {
    /// What it gives up to that limit, in blocks.
    private func blocks(
        of session: HTTP2Session, limitBytes: Int, expectedBytes: Int
    ) throws -> (blocks: [ByteBuffer], isMore: Bool) {
        var blocks: [ByteBuffer] = []
        let produced = session.produce(
            limitBytes: limitBytes, expectedBytes: expectedBytes, from: ByteBufferAllocator()
        ) { blocks.append($0) }
        let found = try #require(produced)
        #expect(found.bytes == blocks.reduce(0) { $0 + $1.readableBytes })
        return (blocks, found.isMore)
    }

    @Test("A burst comes in whole frames, in order, in blocks of one TLS record at most that do not grow")
    func burst() throws {
        let session = try #require(HTTP2Session())
        let greeting = try blocks(of: session, limitBytes: 1 << 16, expectedBytes: 64)
        #expect(greeting.blocks.count == 1)
        #expect(!greeting.isMore)
        for _ in 0..<3_000 { session.ping() }
        let (first, isMore) = try blocks(of: session, limitBytes: 20_000, expectedBytes: 1_000)
        #expect(isMore)
        let (rest, isStillMore) = try blocks(of: session, limitBytes: 1 << 16, expectedBytes: 1 << 16)
        #expect(!isStillMore)
        #expect(first.map(\.capacity) == [1_024, 4_096, 16_384])
        #expect(rest.map(\.capacity) == [16_384, 16_384])
        for block in first + rest {
            // A PING is 17 bytes long.
            #expect(block.readableBytes % 17 == 0)
            for at in stride(from: 0, to: block.readableBytes, by: 17) {
                #expect(block.getBytes(at: at, length: 5) == [0, 0, 8, 6, 0])
            }
        }
        #expect((first + rest).reduce(0) { $0 + $1.readableBytes } == 3_000 * 17)
    }

    @Test("Nothing to write is no block")
    func nothing() throws {
        let session = try #require(HTTP2Session())
        _ = try blocks(of: session, limitBytes: 1 << 16, expectedBytes: 64)
        let (none, isMore) = try blocks(of: session, limitBytes: 1 << 16, expectedBytes: 2_048)
        #expect(none.isEmpty)
        #expect(!isMore)
    }
}
