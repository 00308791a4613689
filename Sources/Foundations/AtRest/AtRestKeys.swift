package import PushModel

/// The keys of one store: one for digests, and numbered ones for sealing, newest first.
package struct AtRestKeys: Sendable {
    package struct SealKey: Sendable {
        /// Rising from 1; stands in front of everything sealed with it.
        package var number: UInt32
        package var key: Secret

        package init(number: UInt32, key: Secret) {
            self.number = number
            self.key = key
        }
    }

    static let keyBytes = 32
    /// More keys than anybody rotates in a lifetime; a bound for the start-up check.
    static let sealKeyLimit = 1000

    package let lookup: Secret
    /// At least one; the first seals, all open.
    package let seal: [SealKey]

    /// `nil` unless all keys have 32 bytes and the numbers are distinct, in 1...1000.
    package init?(lookup: Secret, seal: [SealKey]) {
        let seal = seal.sorted { $0.number > $1.number }
        guard lookup.count == Self.keyBytes, !seal.isEmpty, seal.count <= Self.sealKeyLimit,
            seal.allSatisfy({ $0.key.count == Self.keyBytes && (1...1000).contains($0.number) }),
            Set(seal.map(\.number)).count == seal.count
        else { return nil }
        self.lookup = lookup
        self.seal = seal
    }

    private init(lookup: Secret, first: Secret) {
        self.lookup = lookup
        seal = [SealKey(number: 1, key: first)]
    }

    /// Fresh keys: for a new key file, or for a store that ends with the process.
    package static func generate(_ world: World) -> AtRestKeys {
        AtRestKeys(lookup: Secret(world.randomBytes(keyBytes)), first: Secret(world.randomBytes(keyBytes)))
    }

    /// The same keys with a fresh one in front; `nil` after number 1000.
    package func rotated(_ world: World) -> AtRestKeys? {
        let next = SealKey(number: seal[0].number + 1, key: Secret(world.randomBytes(Self.keyBytes)))
        return AtRestKeys(lookup: lookup, seal: [next] + seal)
    }

    /// Without the keys of these numbers; `nil` when none would be left.
    package func without(_ numbers: [UInt32]) -> AtRestKeys? {
        AtRestKeys(lookup: lookup, seal: seal.filter { !numbers.contains($0.number) })
    }

    /// Which store they are for: the same in all its key files, whatever was rotated. No secret.
    package var storeName: String { Digests.name(of: lookup) }

    func sealKey(_ number: UInt32) -> Secret? { seal.first { $0.number == number }?.key }
}

/// The ids of rows, for whoever has a store's keys and knows what push services were told (decision 0106).
package struct SentNames: Sendable {
    private let digests: Digests

    package init(_ keys: AtRestKeys) { digests = Digests(lookup: keys.lookup) }

    package func row(sentAs id: PushID) -> PushID { digests.row(sentAs: id) }
}
