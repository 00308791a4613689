import PushModel

/// An item of a notify call, in any of its three forms, as the relay makes a push of it.
protocol NotifiedItem: Sendable {
    var device: DeviceName { get }
    /// Only a call is urgent; removals and the like are background.
    var pushClass: PushClass { get }
    /// Whether the item can be for the device.
    ///
    /// - Throws: `.kindMismatch`
    func check(_ registration: ZulipRegistration) throws(ZulipError)
    func message(to registration: ZulipRegistration, _ fallbacks: FallbackAlerts) -> ProviderMessage
    /// What identifies a repeat: only a repeat has the same nonce and key.
    func identity(_ address: Secret) -> Secret
}

/// v12 and v11: all but topic and token comes from the server.
extension NotifyItem: NotifiedItem {
    var pushClass: PushClass {
        switch target {
        case .apns(_, .voip): .urgent
        case .apns(let priority, let type): priority == 10 && type != .background ? .normal : .background
        case .fcm(let priority): priority == .high ? .normal : .background
        }
    }

    func check(_ registration: ZulipRegistration) throws(ZulipError) {
        guard registration.kind == target.kind else { throw ZulipError(.kindMismatch) }
    }

    func message(to registration: ZulipRegistration, _ fallbacks: FallbackAlerts) -> ProviderMessage {
        switch target {
        case .apns(let priority, let type):
            var sent = APNsMessage(
                token: registration.token, bundle: registration.appID ?? "", topicForm: .asNamed,
                pushType: type, priority: priority, payload: payload)
            if hasDefaultAps { sent.payload = payload(fallback: fallbacks.words(for: sent)?.aps) }
            return .apns(sent)
        case .fcm(let priority):
            return .fcm(FCMMessage(address: registration.token, priority: priority, data: payload))
        }
    }

    /// Address ‖ 0 ‖ ciphertext; of v11 address ‖ 1 ‖ number ‖ ciphertext.
    func identity(_ address: Secret) -> Secret {
        payload.reveal { payload in
            device.identity(address, UnsafeRawBufferPointer(rebasing: payload[ciphertext]))
        }
    }
}

/// The specification's own: the row chooses the service, and gives account id and topic (§14.8).
extension SealedItem: NotifiedItem {
    var device: DeviceName { .number(deviceID) }
    var pushClass: PushClass { isUrgent ? .normal : .background }

    func check(_ registration: ZulipRegistration) throws(ZulipError) {}

    func message(to registration: ZulipRegistration, _ fallbacks: FallbackAlerts) -> ProviderMessage {
        // A registration that is found by a number has an account id.
        let accountID = registration.accountID ?? 0
        switch registration.kind {
        case .apns:
            var sent = APNsMessage(
                token: registration.token, bundle: registration.appID ?? "", topicForm: .asNamed,
                pushType: isUrgent ? .alert : .background, priority: isUrgent ? 10 : 5, payload: content)
            sent.payload = apnsBody(accountID: accountID, aps: fallbacks.words(for: sent)?.ownAps)
            return .apns(sent)
        case .fcm:
            return .fcm(
                FCMMessage(
                    address: registration.token, priority: isUrgent ? .high : .normal,
                    data: fcmData(accountID: accountID)))
        }
    }

    /// Address ‖ 1 ‖ number ‖ content.
    func identity(_ address: Secret) -> Secret { content.reveal { device.identity(address, $0) } }
}

extension DeviceName {
    /// Two accounts on one phone are two devices: a number takes part, so that content for the one is no
    /// repeat of content for the other.
    fileprivate func identity(_ address: Secret, _ ciphertext: UnsafeRawBufferPointer) -> Secret {
        address.reveal { address in
            switch self {
            case .token:
                return Secret(count: address.count + 1 + ciphertext.count) { out in
                    out.copyMemory(from: address)
                    out[address.count] = 0
                    UnsafeMutableRawBufferPointer(rebasing: out[(address.count + 1)...])
                        .copyMemory(from: ciphertext)
                }
            case .number(let number):
                return Secret(count: address.count + 9 + ciphertext.count) { out in
                    out.copyMemory(from: address)
                    out[address.count] = 1
                    out.storeBytes(
                        of: number.bigEndian, toByteOffset: address.count + 1, as: Int64.self)
                    UnsafeMutableRawBufferPointer(rebasing: out[(address.count + 9)...])
                        .copyMemory(from: ciphertext)
                }
            }
        }
    }
}
