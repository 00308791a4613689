import Primitives
package import PushModel

extension ZulipRoutine {
    /// Finds the account that a push is for, former ids included, and opens it there.
    ///
    /// What this throws is dropped silently; `.doesNotOpen` is worth counting.
    ///
    /// - Parameter json: the push as the system handed it over (``ZulipDelivery``).
    /// - Parameter devices: all accounts of the phone.
    /// - Returns: the place of the account in `devices`; a notification of `nil` is of a type that this
    ///   version does not know: to be dropped silently.
    /// - Throws: `.foreignPush`; `.unknownPushKey` and `.unknownAccount` where no account has that id in the
    ///   push's own profile; `.doesNotOpen`; `.malformedContent`; `.foreignContent` for what is sealed to an
    ///   account and is of another.
    package static func open(
        delivered json: Secret, for devices: [ZulipRoutine], now: UnixTime
    ) throws(ZulipError) -> (place: Int, notification: ZulipNotification?) {
        try open(try ZulipDelivery(delivered: json), for: devices, now: now)
    }

    /// The same for a push that was read.
    package static func open(
        _ delivery: ZulipDelivery, for devices: [ZulipRoutine], now: UnixTime
    ) throws(ZulipError) -> (place: Int, notification: ZulipNotification?) {
        var fault = ZulipError(delivery.profile == .v12 ? .unknownPushKey : .unknownAccount)
        // Ids are unique on a phone, so that there is one at most, but for data of an earlier fault.
        for (place, device) in devices.enumerated() {
            for key in device.keys(for: delivery, now: now) {
                do throws(ZulipError) {
                    let plain = try key.open(delivery.content)
                    return (place, try ZulipNotification.read(plain, for: device.account))
                } catch { fault = error }
            }
        }
        throw fault
    }

    /// The keys of that profile that may open it.
    private func keys(for delivery: ZulipDelivery, now: UnixTime) -> [OpeningKey] {
        switch delivery.address {
        case .key(let id): return keys.filter { $0.id == id }.map { .pushKey($0.key) }
        case .account(let id):
            var found: [RegistrationKey] = []
            if let current = routine.current, current.profile == delivery.profile, current.id == id {
                found.append(current.key)
            }
            for one in routine.former where one.profile == delivery.profile && one.id == id {
                let age = now.since(one.since)
                if age < ZulipLimits.formerLife { found.append(one.key) }
            }
            return found.compactMap { OpeningKey($0, delivery.profile) }
        }
    }
}

/// A key and the only kind of box that it opens.
private enum OpeningKey {
    case pair(X25519KeyPair)
    case pushKey(PushKey)

    init?(_ key: RegistrationKey, _ profile: ZulipProfile) {
        switch (key, profile) {
        case (.pair(let pair), .zap): self = .pair(pair)
        case (.pushKey(let key), .v11): self = .pushKey(key)
        default: return nil
        }
    }

    func open(_ content: Secret) throws(ZulipError) -> Secret {
        switch self {
        case .pair(let pair): try AccountBox.open(content, with: pair)
        case .pushKey(let key): try ContentBox.open(content, with: key)
        }
    }
}
