package import PushModel
package import Secp256k1Keys

/// What the caller's MLS library knows of a group. MLS itself is the caller's; this is all of it that
/// notifications need.
package protocol GroupView: Sendable {
    /// Raw id of the MLS group, as the caller's MLS library bounds it.
    var groupID: [UInt8] { get }
    /// The leaf that this device is.
    var ownLeaf: UInt32 { get }
    /// Leaves that stand in the tree now.
    var activeLeaves: [UInt32] { get }
    /// Identity of the member whose leaf it is; `nil` for a blank leaf.
    func member(ofLeaf leaf: UInt32) -> XOnlyKey?
}

/// Where a message stands in the order of MLS: it, not `created_at`, tells which of two came later.
package struct MessageOrder: Sendable, Hashable, Comparable {
    package let epoch: UInt64
    /// Place within the epoch, in the order in which the group has the messages.
    package let index: UInt64

    package init(epoch: UInt64, index: UInt64) {
        self.epoch = epoch
        self.index = index
    }

    package static func < (left: Self, right: Self) -> Bool {
        left.epoch != right.epoch ? left.epoch < right.epoch : left.index < right.index
    }
}

/// An inner event and what MLS says of it.
package struct GroupMessage: Sendable {
    package let event: NostrEvent
    /// The leaf that MLS proved to be the sender.
    package let senderLeaf: UInt32
    package let order: MessageOrder

    package init(_ event: NostrEvent, senderLeaf: UInt32, order: MessageOrder) {
        self.event = event
        self.senderLeaf = senderLeaf
        self.order = order
    }
}

/// Both clocks at once: dates outlive a start of the program, pauses do not survive a change of the date.
package struct Moment: Sendable {
    package let wall: UnixTime
    package let instant: ContinuousClock.Instant

    package init(wall: UnixTime, instant: ContinuousClock.Instant) {
        self.wall = wall
        self.instant = instant
    }
}

/// What the app runs on.
public enum DevicePlatform: Sendable, Hashable, CaseIterable {
    /// iPhones, iPads, Macs: tokens of APNs.
    case apple
    /// Tokens of FCM.
    case android
    /// Registers nothing, and may wake others.
    case desktop

    /// The one push service whose tokens a device of this platform may register. An Apple device never names
    /// Google's: one service behind both would see across groups and platforms (spec, "Native Push Services
    /// Only").
    package var pushService: DeviceTarget.Platform? {
        switch self {
        case .apple: .apns
        case .android: .fcm
        case .desktop: nil
        }
    }
}
