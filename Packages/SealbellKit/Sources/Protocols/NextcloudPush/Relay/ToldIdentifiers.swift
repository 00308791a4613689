import PushModel
import Synchronization

/// Which identifiers without a row were told to whom.
final class ToldIdentifiers: Sendable {
    /// The beginning of the identifier, which is a digest. Whoever makes two that begin alike has one of them
    /// told at no cost.
    private struct Name: Hashable {
        let client: ClientKey?
        let start: (UInt64, UInt64)

        init(_ identifier: DeviceIdentifier, _ client: ClientKey?) {
            self.client = client
            start = identifier.withBytes {
                ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            }
        }

        static func == (left: Self, right: Self) -> Bool {
            left.client == right.client && left.start == right.start
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(client)
            hasher.combine(start.0)
        }
    }

    private let told = Mutex(Recent<Name, Bool>(capacity: NextcloudLimits.toldIdentifiers))

    func contains(_ identifier: DeviceIdentifier, to client: ClientKey?) -> Bool {
        let name = Name(identifier, client)
        return told.withLock { $0.value(name) != nil }
    }

    func note(_ identifier: DeviceIdentifier, to client: ClientKey?) {
        let name = Name(identifier, client)
        told.withLock { $0.set(true, for: name) }
    }
}
