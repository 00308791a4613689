public import PushModel

/// The device of a protocol: what makes a phone reachable, and opens what arrives. A value; it sends nothing.
///
/// At each start an app makes it from its setup and from what it kept, gives it the device token, and then
/// does what ``due(at:)`` says until it says nothing:
///
/// 1. ask ``due(at:)``, and save ``kept``;
/// 2. make the calls, and bring each answer to ``answered(_:to:at:)``; save ``kept`` again;
/// 3. once more from 1, until nothing is due; then at ``nextDue``, and after each change.
///
/// Only the app writes ``kept``: a notification service extension makes the device from it and only opens. If
/// both wrote the same text, one would overwrite the other's changes.
public protocol PushDevice: Sendable {
    /// What is built into the app or given by the user: handed in at each start, and never kept.
    associatedtype Setup: Sendable
    /// What is in a push of this protocol.
    associatedtype Content: Sendable

    /// Makes the device.
    ///
    /// - Parameter setup: the same as in the last run, but for what the user has changed.
    /// - Parameter kept: ``kept`` of the last run, at most what the protocol's `Limits` say in bytes; `nil`:
    ///   new.
    /// - Parameter generator: where keys come from; on a phone the system's.
    /// - Throws: `.malformedSetup`; `.malformedKept` for what ``kept`` has not written.
    init(
        _ setup: Setup, keeping kept: Secret?, using generator: inout some RandomNumberGenerator
    ) throws(DeviceError)

    /// Call it at each start, and when the system gives another token.
    ///
    /// - Parameter token: `nil`: no pushes any more, or a logout; ``due(at:)`` then takes everything back.
    /// - Throws: `.malformedToken` for one that no relay of this protocol takes; `.wrongService`. Nothing has
    ///   changed then.
    mutating func use(token: DeviceToken?) throws(DeviceError)

    /// What is to be done now.
    ///
    /// Never throws: what is wrong is in ``status(at:)``.
    ///
    /// - Parameter generator: where nonces and waits come from; on a phone the system's.
    /// - Returns: calls, each once; none before a token was given.
    mutating func due(at now: UnixTime, using generator: inout some RandomNumberGenerator) -> [Call]

    /// Takes what came back for a call. Ask ``due(at:)`` behind it.
    ///
    /// An answer that comes twice, late, or to a call that this device has not given in this run changes
    /// nothing.
    ///
    /// - Parameter generator: where waits come from; on a phone the system's.
    mutating func answered(
        _ answer: CallAnswer, to call: Call, at now: UnixTime,
        using generator: inout some RandomNumberGenerator
    )

    /// Opens a push. Changes nothing, so that an extension may do it beside the app.
    ///
    /// - Throws: `.foreign` for what is not of this protocol, or not for this device; `.doesNotOpen`, worth
    ///   counting; `.malformedContent`. What throws is not shown.
    func open(_ delivered: Delivered, at now: UnixTime) throws(DeviceError) -> Opened<Content>

    /// Call it in one transaction with storing the message: repeats of it are ignored from then on. Without
    /// it they open again. Where a protocol has no repeats, nothing happens.
    mutating func stored(_ content: Content)

    /// The device's state at those who send to it.
    func status(at now: UnixTime) -> DeviceStatus

    /// What to keep over a restart: in the keychain, out of backups. It has private keys and the device
    /// token; the protocol's `Limits` bound its bytes.
    var kept: Secret { get }

    /// When to ask ``due(at:)`` without anything having happened; `nil`: only when something happens.
    var nextDue: UnixTime? { get }

    /// After ``use(token:)`` with `nil`: whether nothing of this phone is left anywhere, so that the app may
    /// forget the device. Until then, make the device again at each start and pass `nil` again.
    var isGone: Bool { get }
}

extension PushDevice {
    /// Makes the device, with keys of the system's generator.
    ///
    /// - Parameter kept: ``kept`` of the last run, at most what the protocol's `Limits` say in bytes; `nil`:
    ///   new.
    /// - Throws: `.malformedSetup`; `.malformedKept`.
    public init(_ setup: Setup, keeping kept: Secret? = nil) throws(DeviceError) {
        var generator = SystemRandomNumberGenerator()
        try self.init(setup, keeping: kept, using: &generator)
    }

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

    /// Nothing: a protocol without repeats.
    public mutating func stored(_ content: Content) {}

    /// Opens a push of one of several devices: of accounts, or of groups.
    ///
    /// - Returns: the place in `devices` of the first that it is for, and what to do about it. One that is
    ///   switched off is the answer only where no other opens it: a wake may be meant for all of them.
    /// - Throws: `.foreign` where none of them knows it; else what the first that knows it throws.
    public static func open(
        _ delivered: Delivered, among devices: [Self], at now: UnixTime
    ) throws(DeviceError) -> (place: Int, opened: Opened<Content>) {
        var fault = DeviceError(.foreign)
        var off: (place: Int, opened: Opened<Content>)?
        for (place, device) in devices.enumerated() {
            do throws(DeviceError) {
                let opened = try device.open(delivered, at: now)
                guard case .ignore(.switchedOff) = opened else { return (place, opened) }
                off = off ?? (place, opened)
            } catch {
                if fault.code == .foreign { fault = error }
            }
        }
        if let off { return off }
        throw fault
    }
}
