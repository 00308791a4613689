public import PushModel
public import RSAKeys
public import SealbellKit
import WireFormats

/// The origin: a Nextcloud server's part in push (§4). A value; it sends nothing and keeps no rows.
public struct NextcloudOrigin: Sendable {
    /// What a server's administrator chooses.
    public struct Settings: Sendable {
        /// How plaintexts are padded. Clients older than 2025 open PKCS#1 v1.5 alone.
        public var padding: RSAPadding
        /// Whether devices may name proxies at private addresses.
        public var localProxies: LocalProxies
        /// `X-Nextcloud-Subscription-Key` for each proxy (without final slashes) that wants one.
        public var subscriptionKeys: [String: Secret]
        /// What `capabilities` says.
        public var version: NextcloudVersion

        /// As deployed servers have it, unless said otherwise.
        ///
        /// - Parameter subscriptionKeys: texts by proxy, its URL without final slashes.
        public init(
            padding: RSAPadding = .oaepSHA1, localProxies: LocalProxies = .refused,
            subscriptionKeys: [String: Secret] = [:], version: NextcloudVersion = .assumed
        ) {
            self.padding = padding
            self.localProxies = localProxies
            self.subscriptionKeys = subscriptionKeys
            self.version = version
        }
    }

    /// What it was made with.
    public let settings: Settings

    /// A server's part with these settings.
    public init(_ settings: Settings = Settings()) { self.settings = settings }

    /// Seals a notification for each of one user's devices.
    ///
    /// - Parameter audience: of ``PushConditions/audience(for:of:now:)``.
    /// - Throws: `.plaintextTooLong` when its ids leave no room even for an empty subject, or its texts are
    ///   longer than the padding takes. It is then for nobody, and no device is to blame.
    public func notify(
        _ notification: NextcloudNotification, to audience: Audience, of user: NextcloudUser
    ) throws(NextcloudError) -> Sealing {
        let plain = SubjectPlaintext.notification(notification)
        return try seal([plain], NextcloudPushKind(notification), for: audience.devices, of: user)
    }

    /// Takes notifications off the devices' screens.
    ///
    /// - Throws: `.plaintextTooLong`, `.sealingFailed`; nothing is sealed then.
    public func withdraw(
        _ ids: [Int64], from audience: Audience, of user: NextcloudUser
    ) throws(NextcloudError) -> Sealing {
        var sealing = Sealing()
        for device in audience.devices {
            let plain = SubjectPlaintext.withdrawals(of: ids, for: device.group)
            let part = try seal(plain, .withdrawal, for: [device], of: user)
            sealing.entries += part.entries
            sealing.deaf += part.deaf
        }
        return sealing
    }

    /// Takes everything off the devices' screens.
    ///
    /// - Parameter audience: of ``PushConditions/everybody(of:now:)``.
    /// - Throws: `.sealingFailed`; nothing is sealed then.
    public func withdrawAll(
        from audience: Audience, of user: NextcloudUser
    ) throws(NextcloudError) -> Sealing {
        try seal([SubjectPlaintext.withdrawalOfAll], .withdrawal, for: audience.devices, of: user)
    }

    /// What came of sealing for several devices.
    public struct Sealing: Sendable {
        /// In the order in which the proxies are to have them.
        public internal(set) var entries: [SealedEntry] = []
        /// App passwords of devices whose key takes no ciphertext; their rows are to be deleted.
        public internal(set) var deaf: [Int64] = []
    }

    /// The call with entries for one proxy: `POST <proxy>/notifications` (§4.6).
    ///
    /// - Parameter entries: all for the same proxy, at least one.
    public func call(_ entries: some Collection<SealedEntry>) -> HTTPCall {
        let proxy = entries.first?.proxy ?? ""
        var headers: [(name: String, value: Secret)] = [
            ("Content-Type", Secret(HTTPCall.formType.utf8)),
            ("User-Agent", Secret(Self.userAgent.utf8))
        ]
        if let key = settings.subscriptionKeys[proxy] {
            headers.append(("X-Nextcloud-Subscription-Key", key))
        }
        let fields = entries.enumerated().map {
            (name: "notifications[\($0.offset)]", value: $0.element.json)
        }
        return HTTPCall(
            method: "POST", url: proxy + "/notifications", headers: headers,
            body: HTTPCall.form(fields), answerLimitBytes: NextcloudLimits.answerBytes)
    }

    /// Makes a subscription key: five groups of five letters and digits (§4.6).
    public static func inventSubscriptionKey(using generator: inout some RandomNumberGenerator) -> Secret {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789".utf8)
        let groups = (0..<5).map { _ in
            (0..<5).map { _ in digits[Int.random(in: digits.indices, using: &generator)] }
        }
        return Secret(Array(groups.joined(separator: [UInt8(ascii: "-")])))
    }

    // MARK: parts

    static let userAgent = "Nextcloud Server Crawler"

    private func seal(
        _ plain: [Secret], _ kind: NextcloudPushKind, for devices: [RegisteredDevice],
        of user: NextcloudUser
    ) throws(NextcloudError) -> Sealing {
        guard plain.allSatisfy({ $0.count <= settings.padding.plaintextBytes }) else {
            throw NextcloudError(.plaintextTooLong)
        }
        var sealing = Sealing()
        for device in devices {
            let pem = Array(device.devicePublicKey.utf8)
            // A key that is none says nothing but that.
            guard let key = pem.withUnsafeBytes({ try? RSAPublicKey(pem: $0) }) else {
                sealing.deaf.append(device.tokenID)
                continue
            }
            for text in plain {
                let sealed = try SubjectBox.seal(
                    text, to: key, padding: settings.padding, signedBy: user.key)
                sealing.entries.append(SealedEntry(device, sealed, kind))
            }
        }
        return sealing
    }
}

/// One element of a call to a proxy: a push for one device, sealed.
public struct SealedEntry: Sendable {
    /// URL without final slashes.
    public let proxy: String
    /// Base64, 88 characters.
    public let deviceIdentifier: String
    /// SHA-512 of the device's token: 128 hex digits in lower case.
    public let pushTokenHash: String
    /// Urgency and form: `priority` and `type` of the element.
    public let kind: NextcloudPushKind
    /// The element's value, itself JSON: six texts, slashes escaped (§4.6).
    public let json: Secret
}

extension SealedEntry {
    package init(_ device: RegisteredDevice, _ sealed: SealedSubject, _ kind: NextcloudPushKind) {
        var text = PHPText(reserving: NextcloudLimits.entryRoomBytes)
        text.raw(#"{"deviceIdentifier":"#)
        text.string(device.deviceIdentifier)
        text.raw(#","pushTokenHash":"#)
        text.string(device.pushTokenHash)
        text.raw(#","subject":"#)
        sealed.subject.reveal { text.string(ascii: $0) }
        text.raw(#","signature":"#)
        sealed.signature.reveal { text.string(ascii: $0) }
        text.raw(#","priority":"#)
        text.string(kind.priority.rawValue)
        text.raw(#","type":"#)
        text.string(kind.form.rawValue)
        text.raw("}")
        self.init(
            proxy: device.proxy, deviceIdentifier: device.deviceIdentifier,
            pushTokenHash: device.pushTokenHash, kind: kind, json: text.takeSecret())
    }
}
