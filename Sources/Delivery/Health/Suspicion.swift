package import PushModel

/// Whether a target fault is taken for a fault of the registration or of our configuration (decision 0082). A
/// value.
///
/// No registration is blamed before the service has accepted something under this credential, project and
/// environment, nor while more addresses in a row meet such faults than a certain part of those that were
/// accepted.
package struct Suspicion: Sendable {
    /// Why no registration is blamed.
    package enum Doubt: String, Sendable, Hashable {
        /// Nothing was accepted since the credential, project or environment changed.
        case unproven
        /// Too many addresses in a row, compared with those that were accepted.
        case share
    }

    /// The part of the accepted addresses that may be dead in a row: one in this many.
    private static let part = 4
    /// Addresses that are remembered as accepted. A quarter of them is about what halts a lane.
    private static let most = 80

    /// An address's number: a hash by a secret of the process already, so that a multiplication makes the
    /// hash of it. Each acceptance enters one and takes one out.
    private struct Number: Sendable, Hashable {
        let value: Int

        func _rawHashValue(seed: Int) -> Int {
            let product = UInt(bitPattern: value ^ seed).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
            return Int(bitPattern: product.high ^ product.low)
        }
    }

    private var isProven: Bool
    /// Addresses with target faults since the last acceptance; only as many as matter.
    private var suspects: Set<Number> = []
    private var accepted: Set<Number> = []
    private var order: [Number] = []
    private var oldest = 0
    private var isTold = false

    /// - Parameter isProven: something was accepted under the same configuration before this process began.
    package init(isProven: Bool) { self.isProven = isProven }

    /// Something was accepted under the same configuration before this process began.
    package mutating func prove() { isProven = true }

    /// - Parameter address: any number that is the same for the same address and differs for others.
    package mutating func note(_ answer: Answer, address: Int) {
        // An answer that our own side made, or none at all, says nothing about the service.
        guard answer.isAnswered else { return }
        if answer.outcome.isAccepted {
            isProven = true
            isTold = false
            suspects.removeAll(keepingCapacity: true)
            remember(Number(value: address))
        } else if Breaker.isTargetFault(answer), suspects.count <= Self.most {
            suspects.insert(Number(value: address))
        }
    }

    /// `nil`: a fault of the target is the registration's.
    package var doubt: Doubt? {
        if !isProven { return .unproven }
        return suspects.count > max(1, accepted.count / Self.part) ? .share : nil
    }

    /// Why no registration is blamed; reported once between two acceptances.
    package mutating func news() -> Doubt? {
        guard !isTold, let doubt else { return nil }
        isTold = true
        return doubt
    }

    private mutating func remember(_ address: Number) {
        guard accepted.insert(address).inserted else { return }
        if order.count < Self.most { return order.append(address) }
        accepted.remove(order[oldest])
        order[oldest] = address
        oldest = (oldest + 1) % Self.most
    }
}

/// The identity of a lane when its service last accepted something: after a restart it shows whether the
/// credential, the project or the environment has changed meanwhile.
enum LaneProof {
    private static let space = Space(core: "proven")

    static func key(_ lane: LaneName) -> RecordKey { RecordKey(space, Secret(lane.description.utf8)) }

    /// - Parameter identity: a digest of the lane's identity at its service. Like every body it is sealed.
    static func record(_ lane: LaneName, _ identity: Secret, now: UnixTime) -> Record {
        Record(key: key(lane), touchedAt: now, body: identity)
    }
}
