package import PushModel
import SealbellKit
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

    /// Finds the members in what arrived, as JSON. Numbers may be text, and the other way round.
    ///
    /// - Parameter json: at most ``ZulipLimits/deliveredBytes``.
    /// - Throws: `.foreignPush` for what is not of this protocol, which an app may have use for elsewhere,
    ///   for an id that is none, and for marks of two profiles.
    package init(delivered json: Secret) throws(ZulipError) {
        let members = Delivered.find(Members.self, in: json, atMost: ZulipLimits.deliveredBytes)
        guard let found = members?.delivery else { throw ZulipError(.foreignPush) }
        self = found
    }

    private init(profile: ZulipProfile, address: Address, content: Secret) {
        self.profile = profile
        self.address = address
        self.content = content
    }

    /// The four members.
    private struct Members: DeliveredMembers {
        var key: UInt32?
        var account: Int64?
        var data: Secret?
        var content: Secret?

        var areThere: Bool { key != nil || account != nil || data != nil || content != nil }

        mutating func read(
            _ name: JSONStringSlice, _ kind: JSONKind, _ reader: inout JSONReader
        ) throws(FormatError) -> DeliveredMember {
            if kind == .null {
                return .foreign
            } else if name.equals("push_account_id") {
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
                return .foreign
            }
            return .own
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

        /// `nil` for marks of two profiles, and for half of one.
        var delivery: ZulipDelivery? {
            switch (key, account, data, content) {
            case (let key?, nil, let data?, nil):
                ZulipDelivery(profile: .v12, address: .key(key), content: data)
            case (nil, let account?, let data?, nil):
                ZulipDelivery(profile: .v11, address: .account(account), content: data)
            case (nil, let account?, nil, let content?):
                ZulipDelivery(profile: .zap, address: .account(account), content: content)
            default: nil
            }
        }
    }
}
