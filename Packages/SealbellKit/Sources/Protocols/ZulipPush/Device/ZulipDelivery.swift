package import PushModel
import WireFormats

/// A push as the system handed it to the app, still sealed (§14.1): APNs' `userInfo`, FCM's `data`.
package struct ZulipDelivery: Sendable {
    /// Whom it is for, in the words of its profile.
    enum Address: Sendable, Hashable {
        /// `push_key_id` (v12).
        case key(UInt32)
        /// `push_account_id` (zap, v11).
        case account(Int64)
    }

    /// Which kind of content it has. It opens with a key of that profile, and with no other.
    package let profile: ZulipProfile
    let address: Address
    /// `encrypted_data` or `encrypted_content`, base64.
    let content: Secret

    /// Finds the members in what arrived, as JSON: beside `aps`, in FCM's `data`, or in a text that is JSON
    /// again. Numbers may be text, and the other way round.
    ///
    /// - Parameter json: at most ``ZulipLimits/deliveredBytes``.
    /// - Throws: `.foreignPush` for what is not of this protocol, which an app may have use for elsewhere,
    ///   for an id that is none, and for marks of two profiles.
    package init(delivered json: Secret) throws(ZulipError) {
        guard json.count <= ZulipLimits.deliveredBytes,
            // Whatever cannot be read is not of this protocol.
            let found = json.reveal({ try? Self.find($0, ZulipLimits.deliveredDepth) })
        else { throw ZulipError(.foreignPush) }
        self = found
    }

    private init(profile: ZulipProfile, address: Address, content: Secret) {
        self.profile = profile
        self.address = address
        self.content = content
    }

    private static func find(
        _ json: UnsafeRawBufferPointer, _ depth: Int
    ) throws(FormatError) -> ZulipDelivery {
        guard depth > 0 else { throw FormatError(.tooDeep) }
        var reader = JSONReader(json, depthLimit: ZulipLimits.jsonDepth)
        if try reader.peek() == .string {
            let text = try reader.readString().secret()
            try reader.end()
            return try text.reveal { (text) throws(FormatError) in try find(text, depth - 1) }
        }
        var members = Members()
        var inner: UnsafeRawBufferPointer?
        try reader.beginObject()
        while let name = try reader.nextMember() {
            let kind = try reader.peek()
            if kind == .null {
                try reader.skipValue()
            } else if try members.read(name, kind, &reader) {
                continue
            } else if name.equals("data") || name.equals("message"), kind == .object || kind == .string {
                inner = try reader.skipValue()
            } else {
                try reader.skipValue()
            }
        }
        try reader.end()
        if members.areThere { return try members.delivery() }
        guard let inner else { throw FormatError(.wrongType) }
        return try find(inner, depth - 1)
    }

    /// The four members; of doubled ones the last counts.
    private struct Members {
        var key: UInt32?
        var account: Int64?
        var data: Secret?
        var content: Secret?

        var areThere: Bool { key != nil || account != nil || data != nil || content != nil }

        /// - Returns: whether the member was one of them.
        mutating func read(
            _ name: JSONStringSlice, _ kind: JSONKind, _ reader: inout JSONReader
        ) throws(FormatError) -> Bool {
            if name.equals("push_account_id") {
                account = try Self.integer(kind, &reader)
            } else if name.equals("push_key_id") {
                guard let id = UInt32(exactly: try Self.integer(kind, &reader)) else {
                    throw FormatError(.wrongType)
                }
                key = id
            } else if name.equals("encrypted_data") {
                data = try reader.readString().secret()
            } else if name.equals("encrypted_content") {
                content = try reader.readString().secret()
            } else {
                return false
            }
            return true
        }

        private static func integer(
            _ kind: JSONKind, _ reader: inout JSONReader
        ) throws(FormatError) -> Int64 {
            let value =
                kind == .string
                ? withBytes(try reader.readString().decoded()) { CanonicalInteger.read($0) }
                : try reader.readNumber().int64
            guard let value else { throw FormatError(.wrongType) }
            return value
        }

        func delivery() throws(FormatError) -> ZulipDelivery {
            switch (key, account, data, content) {
            case (let key?, nil, let data?, nil):
                return ZulipDelivery(profile: .v12, address: .key(key), content: data)
            case (nil, let account?, let data?, nil):
                return ZulipDelivery(profile: .v11, address: .account(account), content: data)
            case (nil, let account?, nil, let content?):
                return ZulipDelivery(profile: .zap, address: .account(account), content: content)
            default: throw FormatError(.wrongType)
            }
        }
    }
}
