package import PushModel
package import RSAKeys
package import SealbellKit
import WireFormats

/// How one account on one phone is registered at its server and at a proxy, and opens what arrives (§3). What
/// ``NextcloudDevice`` goes by; a value, and it sends nothing.
package struct NextcloudRoutine: Sendable {
    /// Why to register now.
    package enum Occasion: Sendable, Hashable {
        /// The app has started, or the system has given another token: nothing is sent where all is known.
        case start
        /// Something seems wrong: register in any case.
        case repair
    }

    /// How the server is told. Deployed apps use both.
    package enum BodyFormat: Sendable, Hashable, CaseIterable { case form, json }

    /// What to do next in a registration.
    package enum Step: Sendable {
        /// Make this call and bring its answer to ``NextcloudRoutine/settle(_:now:using:)``.
        case call(HTTPCall)
        /// Everything is registered. Keep ``NextcloudRoutine/registration``.
        case done
        /// Nobody answered, or asked for patience: call ``NextcloudRoutine/register(_:at:_:format:now:)``
        /// again at that time.
        case later(UnixTime)
        /// It will not pass by trying again.
        case failed(NextcloudError)
    }

    private enum Phase: Sendable {
        case idle
        case atServer(NextcloudPushToken)
        /// `asksAgain`: it has been told the cloud id already.
        case atProxy(NextcloudPushToken, DeviceRegistration, asksAgain: Bool)
    }

    package let account: NextcloudAccount
    package let app: NextcloudAppBuild
    /// Made once and kept in the keychain: with it notifications are opened.
    package let key: RSAPrivateKey
    /// To be kept over a restart; `nil` before the first.
    package private(set) var registration: DeviceRegistration?
    /// Why the last registration failed or is to be tried later, for the app's settings page; `nil` when it
    /// did not, or nobody answered.
    package private(set) var trouble: NextcloudError?
    private var phase = Phase.idle
    /// Answers in a row that may pass; one more than ``NextcloudBackoff/countedFailures`` at most.
    private(set) var failures: Int

    /// - Parameter key: of an earlier run, or `RSAPrivateKey.generate()`.
    package init(
        account: NextcloudAccount, app: NextcloudAppBuild, key: RSAPrivateKey,
        registration: DeviceRegistration? = nil, failures: Int = 0
    ) {
        self.account = account
        self.app = app
        self.key = key
        self.registration = registration
        self.failures = failures
    }

    // MARK: registering

    /// Asks the server what it can do.
    package func capabilities() -> HTTPCall { account.call("GET", NextcloudPaths.capabilities, app) }

    /// Begins a registration, to be called at every start of the app and once a day: at the server first,
    /// then at the proxy. One that is under way begins anew.
    ///
    /// - Throws: `.unsupportedServer` where the server takes no devices.
    package mutating func register(
        _ token: NextcloudPushToken, at server: NextcloudCapabilities, _ occasion: Occasion = .start,
        format: BodyFormat = .form, now: UnixTime
    ) throws(NextcloudError) -> Step {
        guard server.takesDevices else { throw NextcloudError(.unsupportedServer) }
        if occasion == .start,
            registration.map({ !$0.isDue(token.hash, app.proxyServer, key.publicKey, now: now) }) ?? false
        {
            return .done
        }
        phase = .atServer(token)
        let fields: [(name: String, value: Secret)] = [
            ("pushTokenHash", Secret(token.hash.utf8)),
            ("devicePublicKey", Secret(key.publicKey.pem.utf8)),
            ("proxyServer", Secret(app.proxyServer.utf8))
        ]
        let isForm = format == .form
        return .call(
            account.call(
                "POST", NextcloudPaths.push, app,
                type: isForm ? HTTPCall.formType : "application/json",
                body: isForm ? HTTPCall.form(fields) : Self.json(fields)))
    }

    /// Takes the answer to the last call.
    package mutating func settle(
        _ answer: CallAnswer, now: UnixTime, using generator: inout some RandomNumberGenerator
    ) -> Step {
        let step: Step
        trouble = nil
        switch phase {
        // Nothing was asked.
        case .idle: return .failed(NextcloudError(.malformedAnswer))
        case .atServer(let token): step = settleServer(answer, token)
        case .atProxy(let token, let registered, let asksAgain):
            step = settleProxy(answer, token, registered, asksAgain: asksAgain, now: now)
        }
        switch step {
        case .call: return step
        case .done:
            failures = 0
            trouble = nil
        case .failed(let error):
            failures = 0
            trouble = error
        case .later:
            phase = .idle
            return .later(postpone(answer, now: now, using: &generator))
        }
        phase = .idle
        return step
    }

    private mutating func settleServer(_ answer: CallAnswer, _ token: NextcloudPushToken) -> Step {
        // 200 and 201 are the same: a proxy may have forgotten what the server knows (§3.2).
        guard answer.status == 200 || answer.status == 201 else {
            if answer.mayPass { return .later(.distantPast) }
            return .failed(NextcloudError(answer.status == 401 ? .notLoggedIn : Self.refusal(answer.body)))
        }
        let json = answer.body.reveal { bytes in
            // Whatever cannot be read is no answer of this protocol.
            try? JSONValue.parse(bytes, limitBytes: NextcloudLimits.answerBytes)
        }
        let data = json?["ocs"]?["data"]
        guard let pem = data?["publicKey"]?.string, let identifier = data?["deviceIdentifier"]?.string,
            let signature = data?["signature"]?.string,
            // A key that is none proves nothing.
            let userKey = Array(pem.utf8).withUnsafeBytes({ try? RSAPublicKey(pem: $0) }),
            Self.isProof(identifier, signature, by: userKey)
        else { return .failed(NextcloudError(.malformedAnswer)) }
        let registered = DeviceRegistration(
            deviceIdentifier: identifier, signature: signature, userPublicKey: userKey,
            proxyServer: app.proxyServer, pushTokenHash: token.hash,
            deviceKeyDigest: DeviceRegistration.digest(key.publicKey))
        // From here on pushes may be under way that the new key has signed.
        registration = registered
        phase = .atProxy(token, registered, asksAgain: false)
        return .call(proxyCall(token, registered, cloudID: nil))
    }

    private mutating func settleProxy(
        _ answer: CallAnswer, _ token: NextcloudPushToken, _ registered: DeviceRegistration,
        asksAgain: Bool, now: UnixTime
    ) -> Step {
        switch answer.status {
        case .some(200..<300):
            registration = registered
            registration?.completedAt = now
            return .done
        case 409 where !asksAgain:
            phase = .atProxy(token, registered, asksAgain: true)
            return .call(proxyCall(token, registered, cloudID: account.cloudID))
        // The proxy could not ask the server. That may last, so it is asked less and less often.
        case 409:
            trouble = NextcloudError(.instanceUnreachable)
            return .later(.distantPast)
        case 403: return .failed(NextcloudError(Self.proxyRefusal(answer.body)))
        default:
            return answer.mayPass ? .later(.distantPast) : .failed(NextcloudError(.refusedByProxy))
        }
    }

    // MARK: what the device asks for

    /// Whether to register: something has changed, the proxy has not taken it yet, or it is a day old.
    func isDue(_ token: NextcloudPushToken, now: UnixTime) -> Bool {
        registration.map { $0.isDue(token.hash, app.proxyServer, key.publicKey, now: now) } ?? true
    }

    /// What is under way is given up.
    mutating func stop() { phase = .idle }

    /// What stands is told anew, though it still opens what arrives.
    mutating func distrust() { registration?.completedAt = nil }

    /// Nothing stands any more.
    mutating func forget() { (registration, trouble, failures, phase) = (nil, nil, 0, .idle) }

    /// - Returns: when to try again after an answer that may pass.
    mutating func postpone(
        _ answer: CallAnswer, now: UnixTime, using generator: inout some RandomNumberGenerator
    ) -> UnixTime {
        failures = min(failures, NextcloudBackoff.countedFailures) + 1
        return now
            + NextcloudBackoff.pause(
                failures: failures, asked: answer.pause(now: now), isLong: trouble != nil, using: &generator)
    }

    // MARK: receiving

    /// Opens what arrived for this account: verifies it with the user's key, then opens it.
    ///
    /// A VoIP push must be shown as a call even when this throws, or iOS ends the app.
    ///
    /// - Returns: `nil` for a form that this version does not know: to be dropped silently.
    /// - Throws: `.foreignSignature` for what is not of this account; `.doesNotOpen`.
    package func open(_ sealed: SealedSubject) throws(NextcloudError) -> NextcloudContent? {
        guard let userKey = registration?.userPublicKey else { throw NextcloudError(.foreignSignature) }
        return try SubjectBox.open(try SubjectBox.verified(sealed, by: userKey), with: key)
    }

    /// Asks the server for a test push; only where it ``NextcloudCapabilities/hasSelfTest``.
    package func selfTest() -> HTTPCall { account.call("POST", NextcloudPaths.selfTest, app) }

    /// Asks the server for the whole notification.
    package func details(of alert: NextcloudAlert) -> HTTPCall {
        let number = alert.id.map { "/\($0)" } ?? ""
        return account.call("GET", NextcloudPaths.notifications + number, app)
    }

    // MARK: parts

    private func proxyCall(
        _ token: NextcloudPushToken, _ registered: DeviceRegistration, cloudID: String?
    ) -> HTTPCall {
        var fields = [(name: "pushToken", value: token.text)] + registered.proof
        if let cloudID { fields.append(("cloudId", Secret(cloudID.utf8))) }
        return .proxyForm("POST", registered.proxyServer, userAgent: app.proxyUserAgent, fields)
    }

    private static func json(_ fields: [(name: String, value: Secret)]) -> Secret {
        var writer = JSONWriter(reserving: 2_048)
        writer.beginObject()
        for field in fields {
            writer.key(field.name)
            field.value.reveal { writer.string(utf8: $0) }
        }
        writer.endObject()
        return writer.takeSecret()
    }

    /// Whether a proxy would believe the three values.
    private static func isProof(_ identifier: String, _ signature: String, by key: RSAPublicKey) -> Bool {
        // What is no base64 proves nothing.
        guard let digest = try? Base64.decode(identifier), let signed = try? Base64.decode(signature) else {
            return false
        }
        return signed.withUnsafeBytes { signed in
            digest.withUnsafeBytes { key.isValid(signed, overDigest: $0) }
        }
    }

    /// Which 403 it is, where the proxy is one that says so.
    private static func proxyRefusal(_ body: Secret) -> NextcloudError.Code {
        let json = body.reveal { bytes in
            // No word that we know, then.
            try? JSONValue.parse(bytes, limitBytes: NextcloudLimits.answerBytes)
        }
        switch json?["code"]?.string.flatMap({ NextcloudError.Code(rawValue: $0) }) {
        case .instanceUnfit: return .instanceUnfit
        case .instanceNotAdmitted: return .instanceNotAdmitted
        default: return .identityRefused
        }
    }

    private static func refusal(_ body: Secret) -> NextcloudError.Code {
        let json = body.reveal { bytes in
            // No word that we know, then.
            try? JSONValue.parse(bytes, limitBytes: NextcloudLimits.answerBytes)
        }
        switch (json?["ocs"]?["data"]?["message"]?.string).flatMap({ OCSAnswer.Word(rawValue: $0) }) {
        case .invalidTokenHash: return .invalidTokenHash
        case .invalidDeviceKey: return .invalidDeviceKey
        case .invalidProxyServer: return .invalidProxyServer
        case .invalidSessionToken: return .invalidSessionToken
        case nil: return .refusedByServer
        }
    }
}
