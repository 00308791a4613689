package import PushModel
import RSAKeys

/// What the relay stores about an identifier: its owner's key, and its token (§5.2).
///
/// It is no token's record: those end by their own feedback and are emptied then, and this must outlive them
/// so that their end can be told.
package struct NextcloudPin: Sendable {
    /// The first key that was shown, or one that the instance has proven since.
    package let keyDER: [UInt8]
    /// Of the whole `pushToken`.
    package let tokenHash: TokenHash
    package let app: ConfiguredName
    package let registeredAt: UnixTime
    /// What the call token is stored with: exclusive or, byte by byte. So it goes with the pin wherever the
    /// call token's own record is.
    package let voipPad: Secret?

    package init(
        keyDER: [UInt8], tokenHash: TokenHash, app: ConfiguredName, registeredAt: UnixTime, voipPad: Secret?
    ) {
        self.keyDER = keyDER
        self.tokenHash = tokenHash
        self.app = app
        self.registeredAt = registeredAt
        self.voipPad = voipPad
    }

    /// In time that does not depend on how much of two keys is alike.
    func isOf(_ key: RSAPublicKey) -> Bool {
        keyDER.withUnsafeBytes { pinned in key.der.withUnsafeBytes { constantTimeEqual(pinned, $0) } }
    }

    private static let format: UInt8 = 1

    /// Body of its record: format 1, key, hash, app, the registration's time and a second one, pad.
    package var body: Secret {
        let size =
            StoredSize.byte + 4 + keyDER.count + 4 + Bytes64.count + StoredSize.of(app.text)
            + 2 * StoredSize.word + StoredSize.of(optional: voipPad)
        return Secret(fittingAtMost: size) { writer in
            writer.put(Self.format)
            keyDER.withUnsafeBytes { writer.put($0) }
            tokenHash.withBytes { writer.put($0) }
            writer.put(app.text)
            writer.put(Int64?(registeredAt.milliseconds))
            // That of the last conflict, which earlier versions wrote, and read.
            writer.put(Int64?.none)
            writer.put(voipPad)
        }
    }

    /// `nil` for a body that we did not write.
    package init?(body: Secret) {
        let read = body.reveal { bytes -> NextcloudPin? in
            var reader = StoredReader(bytes)
            guard reader.byte() == Self.format, let key = reader.field(),
                let hash = reader.field().flatMap({ TokenHash($0) }),
                let app = reader.text().flatMap({ ConfiguredName($0) }),
                let registered = reader.optionalWord(), let registered, reader.optionalWord() != nil,
                let pad = reader.optionalSecret(), reader.isAtEnd
            else { return nil }
            return NextcloudPin(
                keyDER: Array(key), tokenHash: hash, app: app,
                registeredAt: UnixTime(milliseconds: registered), voipPad: pad)
        }
        guard let read else { return nil }
        self = read
    }
}

/// One token of a device, with the record of its own that a push service's answer ends.
package struct NextcloudTarget: Sendable {
    package enum Kind: UInt8, Sendable { case apns = 1, fcm = 2 }

    package let kind: Kind
    package let token: Secret
    package let app: ConfiguredName
    /// Where the client named one.
    package let environment: Environment?

    package init(kind: Kind, token: Secret, app: ConfiguredName, environment: Environment?) {
        self.kind = kind
        self.token = token
        self.app = app
        self.environment = environment
    }

    private static let format: UInt8 = 1

    /// Body of its record: format 1, kind, environment (0: none, 1 production, 2 sandbox), token, app.
    package var body: Secret {
        let size = 3 * StoredSize.byte + StoredSize.of(token) + StoredSize.of(app.text)
        return Secret(fittingAtMost: size) { writer in
            writer.put(Self.format)
            writer.put(kind.rawValue)
            writer.put(UInt8(environment == nil ? 0 : environment == .production ? 1 : 2))
            writer.put(token)
            writer.put(app.text)
        }
    }

    /// `nil` for a body that we did not write.
    package init?(body: Secret) {
        let read = body.reveal { bytes -> NextcloudTarget? in
            var reader = StoredReader(bytes)
            guard reader.byte() == Self.format, let kind = reader.byte().flatMap({ Kind(rawValue: $0) }),
                let side = reader.byte(), side < 3, let token = reader.secret(),
                let app = reader.text().flatMap({ ConfiguredName($0) }), reader.isAtEnd
            else { return nil }
            return NextcloudTarget(
                kind: kind, token: token, app: app,
                environment: side == 0 ? nil : side == 1 ? .production : .sandbox)
        }
        guard let read else { return nil }
        self = read
    }

    /// The same with its token crossed by a pad; applied twice it is as before. `nil` where the lengths
    /// differ.
    func crossed(with pad: Secret) -> NextcloudTarget? {
        guard pad.count == token.count else { return nil }
        let crossed = Secret(count: token.count) { out in
            token.reveal { token in
                pad.reveal { pad in for at in 0..<out.count { out[at] = token[at] ^ pad[at] } }
            }
        }
        return NextcloudTarget(kind: kind, token: crossed, app: app, environment: environment)
    }
}

extension Secret {
    /// What `write` writes, in memory of exactly that size.
    fileprivate init(fittingAtMost size: Int, _ write: (inout StoredWriter) -> Void) {
        var count = 0
        let whole = Secret(count: size) { out in
            var writer = StoredWriter(out)
            write(&writer)
            count = writer.count
        }
        self = whole.reveal { Secret(copying: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }
}
