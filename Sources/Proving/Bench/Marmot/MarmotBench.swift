import libsecp256k1
import MarmotPush
import Primitives
package import PushModel
import Secp256k1Keys

/// What a wake of Marmot costs in arithmetic, beside the library's own multiplication and beside the sum of
/// an unwrap's primitives, on one thread.
package enum MarmotBench: BesidePrimitives {
    /// Tokens opened beside bare multiplications (issue's goal).
    static let goal = 0.7
    /// So many different keys, that no cache holds the table of one.
    private static let variety = 64
    /// Wraps for one turn of the relay.
    private static let wraps = 8
    /// Whole triggers: a full frame of long tokens, and as many of the short.
    private static let triggers: [(name: String, format: TokenFormat, tokens: Int)] = [
        ("push_v1_19", .pushV1, 19), ("mip05_280_25", .mip05Short, 25)
    ]
    /// Unwraps: a small group's, and that of a full frame.
    private static let unwraps = [1, 19]

    package static let name = "marmot"
    package static let abstract =
        "Measures Marmot's arithmetic: tokens opened and wraps unwrapped on one core."
    package static let discussion = """
        In one process and on one thread, turn by turn: libsecp256k1's own ECDH on parsed keys (bare) \
        and with the X lifted to its point; an encrypted token of each format; the relay's whole way \
        with a full trigger; an unwrap beside the sum of its primitives. Passed means: each format, and \
        the relay's step with the tokens, opens at least 0.7 times as many as the bare ECDH. It begins \
        at the event; reading frames from a socket and sending the wakes are not in it.
        """
    package static let rounds = (usual: 31, span: "about half a second")

    /// - Returns: whether tokens are opened at ``goal`` × bare multiplications or faster.
    package static func measure(
        _ rounds: Int, _ world: World, _ report: inout BenchReport
    ) async throws -> Bool {
        let material = MarmotMaterial(world: world)
        let curve = BareCurve(scalar: material.server.secret)
        defer { curve.end() }
        let times = try await Rounds(
            rounds,
            curveContenders(curve, world) + boxContenders(material) + relayContenders(material, world))
        let (bare, lifted) = (times["bare"], times["bare_lifted"])
        report.add("bare_ecdh", perSecond: bare)
        report.add("bare_ecdh_with_lift", perSecond: lifted)
        var least = Double.infinity
        for format in TokenFormat.allCases {
            let name = "open_\(name(format))"
            report.add(name, perSecond: times[name])
            report.add("\(name)_to_bare", ratio: bare / times[name])
            report.add("\(name)_to_bare_with_lift", ratio: lifted / times[name])
            least = min(least, (bare / times[name]).median)
        }
        for (name, _, tokens) in triggers {
            let whole = times["receive_\(name)"] / Double(tokens)
            let tokensAlone = whole - times["before_tokens_\(name)"] / Double(tokens)
            report.add("relay_\(name)_tokens", perSecond: whole)
            report.add("relay_\(name)_to_bare", ratio: bare / whole)
            report.add("relay_\(name)_step_9_tokens", perSecond: tokensAlone)
            report.add("relay_\(name)_step_9_to_bare", ratio: bare / tokensAlone)
            least = min(least, (bare / tokensAlone).median)
        }
        for tokens in unwraps {
            let wrap = try material.wraps(.pushV1, tokens: tokens, 1)[0]
            let parts = try UnwrapParts(wrap, material.server, curve)
            let name = "unwrap_\(tokens)"
            let whole = Contender("whole", times: nil) { _ in
                let event = try NostrEvent.parse(wrap.text)
                _ = try GiftWrap.unwrap(event, with: material.server)
            }
            let unwrap = try await Dissection(name: name, whole: whole, primitives: parts.primitives)
                .measure(rounds: rounds, digits: 1, &report)
            report.add("\(name)_to_primitives", ratio: unwrap.whole / unwrap.primitives)
        }
        report.add("least_to_bare", least)
        report.add("goal", goal, digits: 1)
        return least >= goal
    }

    private static func curveContenders(_ curve: BareCurve, _ world: World) -> [Contender] {
        let keys = (0..<variety).map { _ in Secp256k1KeyPair.generate(world).publicKey.bytes }
        var points = keys.map { curve.lift($0) }
        var out = [UInt8](repeating: 0, count: 32)
        return [
            Contender("bare", times: nil) { at in curve.multiply(&points[at % variety], into: &out) },
            Contender("bare_lifted", times: nil) { at in
                var point = curve.lift(keys[at % variety])
                curve.multiply(&point, into: &out)
            }
        ]
    }

    private static func boxContenders(_ material: MarmotMaterial) throws -> [Contender] {
        try TokenFormat.allCases.map { format in
            let boxes = try material.boxes(format, variety)
            return Contender("open_\(name(format))", times: nil) { at in
                _ = try TokenBox.decrypt(boxes[at % variety], format, with: material.server)
            }
        }
    }

    private static func name(_ format: TokenFormat) -> String {
        format.rawValue.replacing("-", with: "_")
    }

    /// The relay's whole way with a trigger, and the part of it that stands before the tokens.
    private static func relayContenders(_ material: MarmotMaterial, _ world: World) throws -> [Contender] {
        try triggers.flatMap { name, format, tokens in
            let events = try material.wraps(format, tokens: tokens, wraps).map(\.event)
            let serving = try MarmotServing(
                keys: [material.server], topic: "org.example.app", servesFCM: true)
            // A relay takes a wrap once; a new one has seen none.
            var relay = MarmotRelay(serving, world: world)
            return [
                Contender("receive_\(name)", times: nil) { at in
                    if at % wraps == 0 { relay = MarmotRelay(serving, world: world) }
                    let inbound = MarmotInbound(events[at % wraps], relay: 0)
                    let verdict = try await relay.receive(inbound)
                    guard verdict.pushes.count == tokens else { throw BenchError(.setUpRefused) }
                },
                Contender("before_tokens_\(name)", times: nil) { at in
                    let opened = try GiftWrap.unwrap(events[at % wraps], with: material.server)
                    let trigger = try TriggerContent(reading: opened.event)
                    for chunk in trigger.chunks { _ = SHA256.hash(chunk) }
                }
            ]
        }
    }
}
