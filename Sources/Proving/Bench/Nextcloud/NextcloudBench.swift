import NextcloudPush
package import PushModel
import RSAKeys
import WireFormats

/// What judging a batch of Nextcloud's costs, beside the library's own verification.
package enum NextcloudBench: BesidePrimitives {
    /// Entries judged for each bare verification.
    static let goal = 0.7
    private static let entries = 1_000
    /// A group chat's, and an announcement's to everybody.
    private static let users = [32, 500]

    package static let name = "nextcloud"
    package static let abstract = "Measures Nextcloud batches: entries judged on one core."
    package static let discussion = """
        In one process, turn by turn, by its CPU time: BoringSSL's own verification of RSA-2048 \
        signatures (bare), and the relay's whole way with a call of 1,000 entries from the bytes of its \
        body to the verdict, with keys that it knows and with new ones. Passed means: it judges at least \
        0.7 times as many entries as the bare verification. The store and the sockets are not in it.
        """
    package static let rounds = (usual: 15, span: "about half a second")

    /// - Returns: whether entries are judged at ``goal`` × bare verifications or faster.
    package static func measure(
        _ rounds: Int, _ world: World, _ report: inout BenchReport
    ) async throws -> Bool {
        report.add("entries", entries)
        var least = Double.infinity
        for users in users {
            let material = try NextcloudMaterial(users: users, entries: entries, world: world)
            let registry = HeldRecords()
            let known = try material.relay(registry, world)
            try await material.register(at: known, registry)
            let keys = material.keys.map(\.publicKey)
            let times = try await Rounds(
                rounds,
                [
                    Contender("bare", batch: entries) { _ in verify(material, keys) },
                    Contender("known", batch: entries) { _ in try await judge(material, known) },
                    Contender("new", batch: entries) { _ in
                        try await judge(material, material.relay(registry, world))
                    }
                ])
            let (bare, judged, withNewKeys) = (times["bare"], times["known"], times["new"])
            report.add("users_\(users)_bare_verifications", perSecond: bare)
            report.add("users_\(users)_judged", perSecond: judged)
            report.add("users_\(users)_judged_with_new_keys", perSecond: withNewKeys)
            let call = judged.median * Double(entries)
            report.add("users_\(users)_call_milliseconds", call * 1e3, digits: 1)
            report.add("users_\(users)_to_bare", ratio: bare / judged)
            report.add("users_\(users)_with_new_keys_to_bare", ratio: bare / withNewKeys)
            // A key is new once in a process; the goal is of those that are known.
            least = min(least, (bare / judged).median)
        }
        report.add("least_to_bare", least)
        report.add("goal", goal, digits: 1)
        return least >= goal
    }

    private static func verify(_ material: NextcloudMaterial, _ keys: [RSAPublicKey]) {
        for (number, pair) in material.signed.enumerated() {
            let key = keys[number % keys.count]
            let isValid = withBytes(pair.signature) { signature in
                withBytes(pair.subject) { key.isValid(signature, over: $0) }
            }
            precondition(isValid, "a signature that was just made")
        }
    }

    private static func judge(_ material: NextcloudMaterial, _ relay: NextcloudRelay) async throws {
        let verdict = try await relay.receive(NextcloudMaterial.inbound("/notifications", material.body))
        guard verdict.pushes.count == material.entries else { throw BenchError(.setUpRefused) }
    }
}
