import PushModel
import RSAKeys

/// What a device asks of `POST …/api/v2/push`, read from a form or from JSON; `nil` for what is missing or
/// no text.
public struct PushRegistration: Sendable {
    /// `pushTokenHash`: SHA-512 of the device's token, 128 hex digits in lower case.
    public var pushTokenHash: String?
    /// `devicePublicKey`: PEM, 450 or 451 characters.
    public var devicePublicKey: String?
    /// `proxyServer`: the URL of the proxy that the device has registered at, or is about to.
    public var proxyServer: String?

    /// Nothing is checked here: ``NextcloudRegistrations`` does.
    public init(pushTokenHash: String?, devicePublicKey: String?, proxyServer: String?) {
        self.pushTokenHash = pushTokenHash
        self.devicePublicKey = devicePublicKey
        self.proxyServer = proxyServer
    }

    /// The first check that fails, in the order of §4.1.
    func fault(local: LocalProxies) -> OCSAnswer.Word? {
        guard let pushTokenHash, Self.isTokenHash(pushTokenHash) else { return .invalidTokenHash }
        guard let devicePublicKey, Self.isDeviceKey(devicePublicKey) else { return .invalidDeviceKey }
        guard let proxyServer, ProxyURL.isAcceptable(proxyServer, local: local) else {
            return .invalidProxyServer
        }
        return nil
    }

    /// 128 hex digits in lower case. Deployed servers let a newline behind them through.
    static func isTokenHash(_ text: String) -> Bool {
        text.utf8.count == 128
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    /// PEM in exactly OpenSSL's form, its last newline there or not: 451 or 450 characters. Deployed servers
    /// look no further; a key that does not parse is refused here at once and not at its first push.
    static func isDeviceKey(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count == RSAForm.publicPEMBytes || bytes.count == RSAForm.publicPEMBytes - 1,
            let key = bytes.withUnsafeBytes({ try? RSAPublicKey(pem: $0) })  // That is the question.
        else { return false }
        return key.pem.utf8.prefix(bytes.count).elementsEqual(bytes)
    }
}

/// What becomes of the user's registrations by one call, and the answer to it.
public struct RegistrationVerdict: Sendable {
    /// What the device is told.
    public let answer: OCSAnswer
    /// App passwords whose rows are to be deleted, before ``row`` is written.
    public let deletes: [Int64]
    /// The row to write, in place of the one of the same app password.
    public let row: RegisteredDevice?

    static func answer(_ answer: OCSAnswer) -> RegistrationVerdict {
        RegistrationVerdict(answer: answer, deletes: [], row: nil)
    }
}

extension NextcloudOrigin {
    /// `POST /ocs/v2.php/apps/notifications/api/v2/push` (§4.1): checks in the deployed order, then the row.
    ///
    /// - Parameter session: `nil`: the caller is not logged in.
    /// - Parameter userAgent: of the call; it alone says which group the device is of.
    /// - Parameter rows: the user's registrations.
    /// - Returns: 201 where something is new, 200 where all is as it was; devices go on in both cases.
    /// - Throws: `.sealingFailed` when the library refuses the user's key.
    public func register(
        _ registration: PushRegistration, by session: NextcloudSession?, userAgent: String,
        rows: [RegisteredDevice]
    ) throws(NextcloudError) -> RegistrationVerdict {
        guard let session else { return .answer(.notLoggedIn) }
        if let word = registration.fault(local: settings.localProxies) { return .answer(.refusal(word)) }
        guard let tokenID = session.tokenID else { return .answer(.refusal(.invalidSessionToken)) }
        let identity = session.user.identity(tokenID: tokenID)
        // All three are there, or the checks would have said so.
        let row = RegisteredDevice(
            tokenID: tokenID, deviceIdentifier: identity.deviceIdentifier,
            devicePublicKey: registration.devicePublicKey ?? "",
            pushTokenHash: registration.pushTokenHash ?? "", proxyServer: registration.proxyServer ?? "",
            group: DeviceGroup(userAgent: userAgent))
        let present = rows.first { $0.tokenID == tokenID }
        // A phone that logged in anew: the row under its old app password goes.
        let replaced = rows.filter { $0.tokenID != tokenID && $0.pushTokenHash == row.pushTokenHash }
        let answer = OCSAnswer(
            status: present == row ? 200 : 201,
            data: [
                ("publicKey", .text(session.user.key.publicKey.pem)),
                ("deviceIdentifier", .text(identity.deviceIdentifier)),
                ("signature", .text(try identity.signature(by: session.user.key)))
            ])
        return RegistrationVerdict(
            answer: answer, deletes: replaced.map(\.tokenID), row: present == row ? nil : row)
    }

    /// `DELETE` on the same path: 202 removed, 200 nothing was there.
    public func unregister(by session: NextcloudSession?, rows: [RegisteredDevice]) -> RegistrationVerdict {
        guard let session else { return .answer(.notLoggedIn) }
        guard let tokenID = session.tokenID else { return .answer(.refusal(.invalidSessionToken)) }
        let isThere = rows.contains { $0.tokenID == tokenID }
        return RegistrationVerdict(
            answer: OCSAnswer(status: isThere ? 202 : 200, data: []), deletes: isThere ? [tokenID] : [],
            row: nil)
    }
}
