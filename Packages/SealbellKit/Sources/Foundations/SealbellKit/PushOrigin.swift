public import PushModel

/// A sender that is an app itself, of a protocol without a server in between: it wakes other members' phones.
///
/// It is asked and answered as a ``PushDevice`` is.
public protocol PushOrigin: Sendable {
    /// What is to be done now: calls, each once. Never throws.
    mutating func due(at now: UnixTime, using generator: inout some RandomNumberGenerator) -> [Call]

    /// Takes what came back for a call. Twice, late or foreign: nothing changes. Ask ``due(at:)`` behind it.
    mutating func answered(
        _ answer: CallAnswer, to call: Call, at now: UnixTime,
        using generator: inout some RandomNumberGenerator
    )

    /// What became of notifications since it was asked last, each once.
    mutating func takeSettled() -> [Settled]

    /// When to ask ``due(at:)`` without anything having happened; `nil`: only when something happens.
    var nextDue: UnixTime? { get }

    /// What to keep over a restart, in the keychain, out of backups; the protocol's `Limits` bound its bytes.
    var kept: Secret { get }
}

extension PushOrigin {
    /// What is to be done now, with nonces of the system's generator.
    public mutating func due(at now: UnixTime) -> [Call] {
        var generator = SystemRandomNumberGenerator()
        return due(at: now, using: &generator)
    }

    /// Takes what came back for a call, with waits of the system's generator. Ask ``due(at:)`` behind it.
    public mutating func answered(_ answer: CallAnswer, to call: Call, at now: UnixTime) {
        var generator = SystemRandomNumberGenerator()
        answered(answer, to: call, at: now, using: &generator)
    }
}

/// What became of one notification.
public struct Settled: Sendable, Hashable {
    /// What `notify` returned for it.
    public let id: UInt64
    /// The number of phones, or of servers of phones, that have it.
    public let reached: Int
    /// The number of those that do not.
    public let missed: Int
    /// The protocol's own frozen code of what went wrong first; `nil`: nothing did. For logs.
    public let detail: String?

    package init(id: UInt64, reached: Int, missed: Int, detail: String? = nil) {
        (self.id, self.reached, self.missed, self.detail) = (id, reached, missed, detail)
    }
}
