import DialTesting
import Dialling
import PushModel
import Testing

@testable import SwarmIngress

@Suite("The addresses of a chain daemon")
struct DaemonWaysTests {
    private let dead = IPAddress(v4: 0x7F00_0042)

    /// The address that each of the next tries goes to, and for how many milliseconds.
    private func round(_ ways: inout DaemonWays, _ addresses: [IPAddress]) -> [String] {
        #expect(ways.begin("tcp://daemon.test:22025") { _ in })
        ways.take(addresses)
        var tries: [String] = []
        while let endpoint = ways.next() {
            tries.append("\(endpoint.split(separator: "/").last ?? "") \(ways.share.wholeMilliseconds)")
        }
        return tries
    }

    private func ways(_ addresses: [IPAddress], silence: Duration) -> DaemonWays {
        var limits = SwarmLimits()
        limits.dialling = .swift(addresses)
        limits.dialling.limits.silence = silence
        return DaemonWays(limits)
    }

    @Test("A slow address before a silent one has more time with each round that was in vain")
    func slowBeforeSilent() {
        let addresses = [IPAddress.here, dead]
        var ways = ways(addresses, silence: .seconds(2))
        let (good, silent) = ("127.0.0.1:22025", "127.0.0.66:22025")
        #expect(round(&ways, addresses) == ["\(good) 2000", "\(silent) 2000"])
        #expect(round(&ways, addresses) == ["\(good) 4000", "\(silent) 4000"])
        // No more than its part of the ten seconds.
        #expect(round(&ways, addresses) == ["\(good) 5000", "\(silent) 5000"])
        for _ in 0..<100 { _ = round(&ways, addresses) }
        #expect(round(&ways, addresses) == ["\(good) 5000", "\(silent) 5000"])
    }

    @Test("Where an address has stood, a dead one is left soon again")
    func stood() {
        let addresses = [dead, IPAddress.here]
        var ways = ways(addresses, silence: .seconds(2))
        for _ in 0..<3 { _ = round(&ways, addresses) }
        ways.stood()
        #expect(round(&ways, addresses) == ["127.0.0.1:22025 2000", "127.0.0.66:22025 2000"])
    }

    @Test("A name of one address waits for it as long as for all")
    func alone() {
        var ways = ways([.here], silence: .seconds(2))
        #expect(round(&ways, [.here]) == ["127.0.0.1:22025 10000"])
        #expect(round(&ways, [.here]) == ["127.0.0.1:22025 10000"])
    }
}
