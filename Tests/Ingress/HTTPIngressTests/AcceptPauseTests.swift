#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import HTTPIngress

/// What accept(2) answers is thrown into the pipeline of a channel without a socket, and its clock is turned.
@Suite("Accepting while the system has no descriptor left", .timeLimit(.minutes(30)))
struct AcceptPauseTests {
    private final class Door: Sendable {
        let isStopping = Atomic(false)
        let notes = Atomic(0)
    }

    private static let pause = TimeAmount(IngressLimits.acceptPause)

    /// In one piece: a channel of this kind belongs to the thread that made it.
    private func withChannel(_ body: (EmbeddedChannel, Door) throws -> Void) throws {
        let (channel, door) = (EmbeddedChannel(), Door())
        try channel.pipeline.syncOperations.addHandler(
            AcceptPause(
                isStopping: { door.isStopping.load(ordering: .relaxed) },
                note: { door.notes.add(1, ordering: .relaxed) }))
        try body(channel, door)
    }

    private func fail(_ channel: EmbeddedChannel, _ code: CInt) {
        channel.pipeline.fireErrorCaught(IOError(errnoCode: code, reason: "accept"))
    }

    /// What accepting was last turned to; `nil` while nobody has.
    private func accepts(_ channel: EmbeddedChannel) -> Bool? {
        channel.options.first { $0.option is ChannelOptions.Types.AutoReadOption }?.value as? Bool
    }

    @Test(
        "It pauses, however often it is said, goes on by itself, and pauses anew",
        arguments: [EMFILE, ENFILE, ENOBUFS, ENOMEM])
    func pauses(_ code: CInt) throws {
        try withChannel { channel, door in
            for _ in 0..<2 {
                for _ in 0..<3 { fail(channel, code) }
                #expect(accepts(channel) == false)
                channel.embeddedEventLoop.advanceTime(by: Self.pause - .nanoseconds(1))
                #expect(accepts(channel) == false)
                channel.embeddedEventLoop.advanceTime(by: .nanoseconds(1))
                #expect(accepts(channel) == true)
            }
            #expect(door.notes.load(ordering: .relaxed) == 6)
            try channel.throwIfErrorCaught()
        }
    }

    @Test("A listener that stops accepts no more, whenever it began to")
    func stops() throws {
        try withChannel { channel, door in
            fail(channel, EMFILE)
            door.isStopping.store(true, ordering: .relaxed)
            channel.embeddedEventLoop.advanceTime(by: Self.pause)
            #expect(accepts(channel) == false)
        }
        try withChannel { channel, door in
            door.isStopping.store(true, ordering: .relaxed)
            fail(channel, EMFILE)
            channel.embeddedEventLoop.advanceTime(by: Self.pause)
            #expect(accepts(channel) == nil, "what has ended is not turned")
        }
    }

    @Test("Any other fault goes its way")
    func others() throws {
        try withChannel { channel, door in
            fail(channel, ECONNABORTED)
            #expect(throws: IOError.self) { try channel.throwIfErrorCaught() }
            #expect(accepts(channel) == nil && door.notes.load(ordering: .relaxed) == 0)
        }
    }
}
