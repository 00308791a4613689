package import PushModel

/// What the relay stores about one device that wants one account's messages.
///
/// Showing it to a storage server takes all of it; a push needs little of it and reads that in place
/// (``SubscriptionView``).
package struct SessionSubscription: Sendable {
    package let account: AccountID
    /// Of a person's account, 32 bytes.
    package let sessionKey: Secret?
    /// Token and the owner's signature.
    package let subaccount: SessionClaim.Subaccount?
    package let signature: Secret
    /// Unix seconds.
    package let signedAt: Int64
    package let wantsData: Bool
    /// Strictly ascending.
    package let namespaces: [Int16]
    package let service: SessionService
    /// The device token.
    package let token: Secret
    package let encryptionKey: Secret
    package let app: ConfiguredName
    /// Signed with the withdrawn scheme's subkey: no storage server would accept it.
    package let isLocal: Bool

    package init(_ form: SubscribeForm, app: ConfiguredName, isLocal: Bool = false) {
        account = form.claim.account
        sessionKey = form.claim.sessionKey
        subaccount = form.claim.subaccount
        signature = form.claim.signature
        signedAt = form.claim.signedAt
        wantsData = form.wantsData
        namespaces = form.namespaces
        service = form.claim.service
        token = form.claim.token
        encryptionKey = form.encryptionKey
        self.app = app
        self.isLocal = isLocal
    }

    /// When the signature stops being valid.
    package var expiresAt: UnixTime { UnixTime(seconds: signedAt) + SessionLimits.signatureLife }

    /// The record of it.
    ///
    /// - Parameter name: the name of its row; `nil`: its own name.
    package func record(_ keys: SessionRecordNames, bundle: String?, now: UnixTime) -> Record {
        Record(
            key: keys.subscription(account, service, token), owner: keys.owner(account),
            address: keys.address(of: token, bundle: service.isApple ? bundle : nil),
            version: SessionVersion.live(signedAt), touchedAt: now, expiresAt: expiresAt, body: body)
    }

    /// The part of its signer's limit that it takes.
    func slot(_ keys: SessionRecordNames, signer: Secret, bundle: String?, now: UnixTime) -> Record {
        Record(
            key: keys.slot(account, service, token), owner: keys.owner(account, signer: signer),
            address: keys.slotAddress(of: token, bundle: service.isApple ? bundle : nil),
            version: SessionVersion.live(signedAt), touchedAt: now, expiresAt: expiresAt, body: Secret([]))
    }

    /// `nil` for a record that is absent, has ended, or was not written by us.
    package init?(_ record: Record) {
        guard record.state == .live else { return nil }
        self.init(body: record.body)
    }

    // MARK: the stored form

    /// Offsets of the fields of fixed length. After them come the subaccount (100 bytes, if there is one),
    /// the namespaces (two bytes each, big-endian), and the app's name and the token, each after its length.
    enum Layout {
        static let format: UInt8 = 1
        static let flags = 1
        static let service = 2
        static let namespaceCount = 3
        static let encryptionKey = 5
        static let account = 37
        static let signedAt = 70
        static let signature = 78
        static let sessionKey = 142
        static let fixed = 174
        static let subaccount = SessionLimits.subaccountBytes + SessionLimits.signatureBytes

        static let wantsData: UInt8 = 1
        static let hasSessionKey: UInt8 = 2
        static let hasSubaccount: UInt8 = 4
        static let isLocal: UInt8 = 8
    }

    package var body: Secret {
        let name = Array(app.text.utf8)
        let tail = 2 * namespaces.count + 1 + name.count + 2 + token.count
        let delegated = subaccount == nil ? 0 : Layout.subaccount
        return Secret(count: Layout.fixed + delegated + tail) { out in
            out[0] = Layout.format
            out[Layout.flags] = flags
            out[Layout.service] = service.stored
            put(UInt16(namespaces.count), at: Layout.namespaceCount, out)
            put(encryptionKey, at: Layout.encryptionKey, out)
            put(account.bytes, at: Layout.account, out)
            out.storeBytes(of: signedAt.bigEndian, toByteOffset: Layout.signedAt, as: Int64.self)
            put(signature, at: Layout.signature, out)
            if let sessionKey { put(sessionKey, at: Layout.sessionKey, out) }
            var at = Layout.fixed
            if let subaccount {
                put(subaccount.token, at: at, out)
                put(subaccount.signature, at: at + SessionLimits.subaccountBytes, out)
                at += Layout.subaccount
            }
            for namespace in namespaces {
                put(UInt16(bitPattern: namespace), at: at, out)
                at += 2
            }
            out[at] = UInt8(name.count)
            UnsafeMutableRawBufferPointer(rebasing: out[(at + 1)...]).copyBytes(from: name)
            at += 1 + name.count
            put(UInt16(token.count), at: at, out)
            put(token, at: at + 2, out)
        }
    }

    private var flags: UInt8 {
        (wantsData ? Layout.wantsData : 0) | (sessionKey == nil ? 0 : Layout.hasSessionKey)
            | (subaccount == nil ? 0 : Layout.hasSubaccount) | (isLocal ? Layout.isLocal : 0)
    }

    private func put(_ secret: Secret, at offset: Int, _ out: UnsafeMutableRawBufferPointer) {
        secret.reveal { UnsafeMutableRawBufferPointer(rebasing: out[offset...]).copyMemory(from: $0) }
    }

    private func put(_ value: UInt16, at offset: Int, _ out: UnsafeMutableRawBufferPointer) {
        out.storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt16.self)
    }

    package init?(body: Secret) {
        let read = body.reveal { bytes -> SessionSubscription? in
            SubscriptionView(bytes).flatMap { SessionSubscription($0) }
        }
        guard let read else { return nil }
        self = read
    }

    private init?(_ view: SubscriptionView) {
        guard let account = AccountID(Secret(copying: view.account)),
            let app = ConfiguredName(String(decoding: view.app, as: UTF8.self))
        else { return nil }
        self.account = account
        self.app = app
        sessionKey = view.sessionKey.map { Secret(copying: $0) }
        subaccount = view.subaccount.map { token, signature in
            SessionClaim.Subaccount(token: Secret(copying: token), signature: Secret(copying: signature))
        }
        signature = Secret(copying: view.signature)
        signedAt = view.signedAt
        wantsData = view.wantsData
        namespaces = (0..<view.namespaceCount).map { view.namespace($0) }
        service = view.service
        token = Secret(copying: view.token)
        encryptionKey = Secret(copying: view.encryptionKey)
        isLocal = view.isLocal
    }
}

/// A stored subscription that is read in place. Borrowed; valid as long as the bytes.
package struct SubscriptionView {
    private typealias Layout = SessionSubscription.Layout

    private let bytes: UnsafeRawBufferPointer
    package let service: SessionService
    package let namespaceCount: Int
    private let namespacesStart: Int
    private let appPlace: Range<Int>
    private let tokenPlace: Range<Int>

    /// `nil` for bytes that this program did not write.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count > Layout.fixed, bytes[0] == Layout.format,
            let service = SessionService(stored: bytes[Layout.service])
        else { return nil }
        let hasSubaccount = bytes[Layout.flags] & Layout.hasSubaccount != 0
        let start = Layout.fixed + (hasSubaccount ? Layout.subaccount : 0)
        let count = Int(Self.word(bytes, Layout.namespaceCount))
        let name = start + 2 * count
        guard name < bytes.count else { return nil }
        let nameEnd = name + 1 + Int(bytes[name])
        guard nameEnd + 2 <= bytes.count, nameEnd + 2 + Int(Self.word(bytes, nameEnd)) == bytes.count else {
            return nil
        }
        self.bytes = bytes
        self.service = service
        namespaceCount = count
        namespacesStart = start
        appPlace = name + 1..<nameEnd
        tokenPlace = nameEnd + 2..<bytes.count
    }

    package var wantsData: Bool { has(Layout.wantsData) }
    package var isLocal: Bool { has(Layout.isLocal) }
    package var encryptionKey: UnsafeRawBufferPointer { slice(Layout.encryptionKey, SessionLimits.keyBytes) }
    package var account: UnsafeRawBufferPointer { slice(Layout.account, SessionLimits.accountBytes) }
    package var signature: UnsafeRawBufferPointer { slice(Layout.signature, SessionLimits.signatureBytes) }
    package var app: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[appPlace]) }
    package var token: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[tokenPlace]) }

    package var signedAt: Int64 {
        Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: Layout.signedAt, as: Int64.self))
    }

    package var sessionKey: UnsafeRawBufferPointer? {
        has(Layout.hasSessionKey) ? slice(Layout.sessionKey, SessionLimits.keyBytes) : nil
    }

    package var subaccount: (token: UnsafeRawBufferPointer, signature: UnsafeRawBufferPointer)? {
        guard has(Layout.hasSubaccount) else { return nil }
        return (
            slice(Layout.fixed, SessionLimits.subaccountBytes),
            slice(Layout.fixed + SessionLimits.subaccountBytes, SessionLimits.signatureBytes)
        )
    }

    package func namespace(_ index: Int) -> Int16 {
        Int16(bitPattern: Self.word(bytes, namespacesStart + 2 * index))
    }

    /// Whether the device asked for a namespace.
    package func wants(_ namespace: Int16) -> Bool {
        // A handful, in ascending order.
        for index in 0..<namespaceCount {
            let known = self.namespace(index)
            if known >= namespace { return known == namespace }
        }
        return false
    }

    private func has(_ flag: UInt8) -> Bool { bytes[Layout.flags] & flag != 0 }

    private func slice(_ start: Int, _ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[start..<start + count])
    }

    private static func word(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> UInt16 {
        UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: at, as: UInt16.self))
    }
}
