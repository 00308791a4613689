import Primitives
package import PushModel

/// Whether a key file belongs to a store, found out without opening the store for use.
package enum KeyFit: Sendable, Hashable {
    /// Every check value of the store opens with these keys.
    case fits
    /// The store has never been sealed with anything.
    case unused
    /// At least one check value does not open: another store's keys, or an older copy of these.
    case foreign

    /// - Parameter checks: the store's sealed check values, by the names under which its settings have them.
    package static func of(_ keys: AtRestKeys, _ checks: [String: [UInt8]], _ world: World) -> KeyFit {
        guard !checks.isEmpty else { return .unused }
        let sealer = Sealer(keys: keys, random: RandomStream(world))
        let expected = Secret(Digests(lookup: keys.lookup).check)
        let isOpen = checks.allSatisfy { name, sealed in
            Array(name.utf8).withUnsafeBytes { associated in
                do { return try sealer.open(sealed, with: associated) == expected } catch { return false }
            }
        }
        return isOpen ? .fits : .foreign
    }
}
