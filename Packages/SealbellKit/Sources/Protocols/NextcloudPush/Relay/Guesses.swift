import PushModel
import RSAKeys
import Synchronization

/// A call about an identifier whose sender proves nothing: neither with the pinned key, nor by it.
struct Guess {
    let identifier: DeviceIdentifier
    /// The key that is pinned for it; `nil`: there is no pin.
    let pinned: [UInt8]?
    /// Its records that were looked up.
    let records: Records
    /// Whether a key was read for it already.
    let hasReadKey: Bool

    enum Records {
        case pin
        case pinAndTokens(isCalled: Bool)

        var count: Int {
            switch self {
            case .pin: 1
            case .pinAndTokens(let isCalled): isCalled ? 3 : 2
            }
        }
    }
}

/// The device that was found last. Its records are read where somebody guesses at one that is not there.
///
/// One identifier, in memory alone.
final class StandIn: Sendable {
    private let found = Mutex<DeviceIdentifier?>(nil)

    var identifier: DeviceIdentifier? { found.withLock { $0 } }
    func note(_ identifier: DeviceIdentifier) { found.withLock { $0 = identifier } }
    func forget(_ identifier: DeviceIdentifier) { found.withLock { if $0 == identifier { $0 = nil } } }
}

/// Makes sure that a caller who guesses identifiers learns nothing from the time of an answer, and little
/// from the answers (decision 0104).
extension NextcloudRelay {
    /// Does for each identifier what the relay would have done in the opposite case: it reads existing
    /// records for identifiers without any, and unused names for the others; and it reads a key. So in both
    /// cases there is one reading that finds something, one that finds nothing, and one key.
    func level(_ guesses: [Guess]) async {
        var parts: [(guess: Guess, other: DeviceIdentifier?)] = []
        var names: [RecordKey] = []
        for guess in guesses {
            if names.count + guess.records.count > NextcloudLimits.namesPerFind {
                await level(parts, names)
                parts.removeAll(keepingCapacity: true)
                names.removeAll(keepingCapacity: true)
            }
            // Before the first device is found there is nothing that could be told.
            let other = guess.pinned == nil ? standIn.identifier ?? nobody() : nobody()
            guard let other else { continue }
            parts.append((guess, other))
            names += recordNames(other, guess.records)
        }
        if !names.isEmpty { await level(parts, names) }
    }

    private func level(_ parts: [(guess: Guess, other: DeviceIdentifier?)], _ names: [RecordKey]) async {
        // The records are not used, and a store that is out is no reason to refuse a call that is already
        // judged.
        let found = (try? await registry.find(names)) ?? []
        var at = 0
        for (guess, other) in parts {
            let end = min(found.count, at + guess.records.count)
            let records = found[min(at, end)..<end]
            at = end
            let pin = records.first.flatMap { $0 }.flatMap { NextcloudPin(body: $0.body) }
            for record in records.dropFirst() { _ = Self.live(record) }
            if guess.pinned == nil, pin == nil, let other { standIn.forget(other) }
            if case .pinAndTokens = guess.records, !guess.hasReadKey {
                _ = work.read(guess.pinned ?? standInKey.key.der)
            }
        }
    }

    func recordNames(_ identifier: DeviceIdentifier, _ records: Guess.Records) -> [RecordKey] {
        switch records {
        case .pin: [keys.pin(identifier)]
        case .pinAndTokens(let isCalled):
            [keys.pin(identifier), keys.alert(identifier)] + (isCalled ? [keys.voip(identifier)] : [])
        }
    }

    private func nobody() -> DeviceIdentifier? {
        world.randomBytes(NextcloudLimits.identifierBytes).withUnsafeBytes { DeviceIdentifier($0) }
    }

    /// A unit of what a client may guess; all doors take from it.
    ///
    /// - Returns: how long to wait; `nil`: it was taken.
    func chargeGuess(of client: ClientKey?) -> Duration? {
        charge(Toll(allowances.guesses, of: client.map { .client($0) } ?? .everybody))
    }

    /// The same for a devices call that is repeated only because others came between.
    ///
    /// - Throws: `.rateLimited`; by then as much was done as for any other guess.
    func chargeGuess(
        at identifier: DeviceIdentifier, _ pin: NextcloudPin?, _ inbound: NextcloudInbound
    ) async throws(NextcloudError) {
        guard !inbound.isRepeated, let wait = chargeGuess(of: inbound.source) else { return }
        await level([Guess(identifier: identifier, pinned: pin?.keyDER, records: .pin, hasReadKey: true)])
        throw .rateLimited(retryAfter: wait)
    }
}
