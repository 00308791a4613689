import DialTesting
import Dialling
import NIOCore
import NIOPosix
import PushModel
import PushTesting
import Testing

@Suite("Dialling a name of several addresses", .timeLimit(.minutes(30)))
struct DialerTests {
    private let loop = MultiThreadedEventLoopGroup.singleton.next()

    private func dial(
        _ options: DialOptions, _ port: Int, on loop: (any EventLoop)? = nil
    ) async throws -> Dialled<String> {
        let loop = loop ?? self.loop
        return try await bounded("a connection") {
            try await Dialer(options).dial(
                "push.test", port, on: loop, within: .seconds(600), prepare: FirstWords.prepare)
        }
    }

    @Test("One dead address hides no good one, whichever comes first", arguments: DeadAddress.Kind.allCases)
    func dead(_ kind: DeadAddress.Kind) async throws {
        let greeter = try await Greeter()
        let dead = try DeadAddress(kind, port: greeter.port)
        for addresses in [[dead.address, .here], [.here, dead.address]] {
            let dialled = try await dial(.swift(addresses), greeter.port)
            #expect(dialled.ready == "good" && dialled.address == .here)
            try await dialled.channel.close()
        }
        try await greeter.close()
    }

    @Test(
        "All of it in a network without IPv6", .enabled(if: BareNetwork.refusal == nil, "needs a namespace"),
        arguments: DeadAddress.Kind.allCases)
    func withoutIPv6(_ kind: DeadAddress.Kind) async throws {
        try await BareNetwork.with { group in
            let greeter = try await Greeter(on: group)
            let loop = group.next()
            let dead = try await loop.submit { try DeadAddress(kind, port: greeter.port) }.get()
            for addresses in [[dead.address, .here], [.here, dead.address]] {
                let dialled = try await dial(.swift(addresses), greeter.port, on: loop)
                #expect(dialled.ready == "good")
                try await dialled.channel.close()
            }
            try await greeter.close()
        }
    }

    @Test("Seven dead addresses of every kind hide no good eighth")
    func many() async throws {
        let greeter = try await Greeter()
        let dead = try DeadAddress.Kind.allCases.map { try DeadAddress($0, port: greeter.port) }
        var addresses = dead.map(\.address)
        addresses += [0x7F00_0051, 0x7F00_0052].map { IPAddress(v4: $0) }
        let dialled = try await dial(.swift(addresses + [.here]), greeter.port)
        #expect(dialled.ready == "good")
        try await dialled.channel.close()
        try await greeter.close()
    }

    @Test("A dial fails with its last address, and says how far it came")
    func faults() async throws {
        let greeter = try await Greeter()
        let port = greeter.port
        let kinds: [DeadAddress.Kind] = [.refusing, .sixth, .unroutable]
        let dead = try kinds.map { try DeadAddress($0, port: port).address }
        #expect(await fault(.swift(dead), port) == "unreachable")
        #expect(await fault(.swift([]), port) == "unresolved")
        let (silent, swallowing) = (
            try DeadAddress(.silent, port: port), try DeadAddress(.swallowing, port: port)
        )
        let brief = Duration.milliseconds(200)
        #expect(await fault(.swift([swallowing.address]), port, within: brief) == "late")
        #expect(await fault(.swift([swallowing.address, silent.address]), port, within: brief) == "silent")
        try await greeter.close()
    }

    private struct Refusal: Error {}

    @Test("What an attempt says of itself is its own failure alone, and is told if no other does better")
    func ownFailure() async throws {
        let greeter = try await Greeter()
        let silent = try DeadAddress(.silent, port: greeter.port)
        let prepare = { @Sendable (channel: any Channel, attempt: DialAttempt<String>) in
            guard channel.remoteAddress?.ipAddress == "127.0.0.1" else { return attempt.fail(Refusal()) }
            try FirstWords.prepare(channel, attempt)
            attempt.hear()
        }
        let dialled = try await Dialer(.patient([silent.address, .here])).dial(
            "push.test", greeter.port, on: loop, within: .seconds(600), prepare: prepare)
        #expect(dialled.ready == "good")
        try await dialled.channel.close()
        try await greeter.close()
        do {
            _ = try await Dialer(.patient([silent.address, .here])).dial(
                "push.test", greeter.port, on: loop, within: .seconds(600), prepare: prepare)
            Issue.record("nobody was there")
        } catch .failed(let error) { #expect(error is Refusal) }
    }

    @Test("Each address has a channel of its own, and those that lose are closed")
    func losers() async throws {
        let greeter = try await Greeter()
        let silent = try DeadAddress(.silent, port: greeter.port)
        let channels = Noted<[any Channel]>([])
        let dialled = try await Dialer(.swift([silent.address, .here])).dial(
            "push.test", greeter.port, on: loop, within: .seconds(600)
        ) { (channel, attempt: DialAttempt<String>) in
            channels.change { $0.append(channel) }
            try FirstWords.prepare(channel, attempt)
        }
        let lost = channels.value.filter { $0 !== dialled.channel }
        #expect(channels.value.count >= 2 && lost.count == channels.value.count - 1)
        for channel in lost { try await channel.closeFuture.get() }
        #expect(dialled.channel.isActive)
        try await dialled.channel.close()
        try await greeter.close()
    }

    @Test("What worked is tried first the next time")
    func preferred() async throws {
        let greeter = try await Greeter()
        let silent = try DeadAddress(.silent, port: greeter.port)
        // Nothing but a failure makes the next address begin.
        let dialer = Dialer(.patient([silent.address, .here]))
        let tried = Noted<[String?]>([])
        for _ in 0..<2 {
            let dialled = try await dialer.dial(
                "push.test", greeter.port, on: loop, within: .seconds(600)
            ) { (channel, attempt: DialAttempt<String>) in
                let address = channel.remoteAddress?.ipAddress
                tried.change { $0.append(address) }
                guard address == "127.0.0.1" else { return attempt.fail(Refusal()) }
                try FirstWords.prepare(channel, attempt)
            }
            try await dialled.channel.close()
        }
        #expect(tried.value == [silent.address.text, "127.0.0.1", "127.0.0.1"])
        try await greeter.close()
    }

    @Test("A caller that leaves ends the dial, while it looks up and while it connects")
    func cancelled() async throws {
        let greeter = try await Greeter()
        let swallowing = try DeadAddress(.swallowing, port: greeter.port)
        let asked = Noted(0)
        for options in [
            DialOptions(resolver: Mute(asked: asked)), DialOptions.patient([swallowing.address])
        ] {
            let task = Task { await fault(options, greeter.port) }
            if options.resolver is Mute { await asked.until { $0 > 0 } }
            task.cancel()
            #expect(await task.value == "cancelled")
        }
        try await greeter.close()
    }

    /// Never answers.
    private struct Mute: HostResolver {
        let asked: Noted<Int>
        func begin(_ lookUp: LookUp) { asked.change { $0 += 1 } }
    }

    /// How a dial failed.
    private func fault(
        _ options: DialOptions, _ port: Int, within span: Duration = .seconds(600)
    ) async -> String {
        do throws(DialFault) {
            _ = try await Dialer(options).dial(
                "push.test", port, on: loop, within: span, prepare: FirstWords.prepare)
            return "none"
        } catch {
            return switch error {
            case .unresolved: "unresolved"
            case .unreachable: "unreachable"
            case .late: "late"
            case .silent: "silent"
            case .failed: "failed"
            case .cancelled: "cancelled"
            }
        }
    }
}
