/// A push service, by the name that lanes, rows and metric labels know it by: `apns`, `fcm`.
///
/// An open type: each service names itself in a file of its own beside this one, and ``PushServices`` lists
/// them all. Nothing else enumerates them.
package struct PushService: Sendable, Hashable, CustomStringConvertible {
    package let name: String

    /// `nil` unless it has 1 to 15 of `a-z 0-9`: so short a text needs no memory of its own.
    package init?(_ name: some StringProtocol) {
        guard (1...15).contains(name.utf8.count), name.utf8.allSatisfy(Self.allows) else { return nil }
        self.name = String(name)
    }

    /// For the file of a service.
    package init(named name: StaticString) {
        let text = name.description
        precondition(PushService(text) != nil, "no name for a push service")
        self.name = text
    }

    package var description: String { name }

    private static func allows(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: false
        }
    }
}

/// What one push service is asked to deliver: all that the model must know of that service hangs on this
/// type, and stands in one file.
package protocol ServiceMessage: Sendable {
    static var service: PushService { get }
    /// The first bytes of its stored forms. No other service has any of them, and none is ever given to
    /// another form: stores of before must open.
    static var storedTags: [UInt8] { get }
    /// The words of the service's answers that are known by name.
    static var reasons: [Reason] { get }

    /// The device token, the registration or the endpoint.
    var address: Secret { get }
    /// The environment that it names: then nothing is learned by it and no other is tried. `nil`: its app's
    /// outlet tells, and what is known of the address.
    var environment: Environment? { get }
    /// Where it goes, `host:port`, when the service has many and the push names one. Each has a breaker, a
    /// throttle and connections of its own within the lane. `nil`: the service keeps one authority. Chosen by
    /// strangers, so never a log line nor a label.
    var authority: String? { get }
    /// Of payload and address, in memory.
    var bytes: Int { get }

    /// Bytes that ``write(to:)`` needs at most.
    var storedSize: Int { get }
    /// Its stored form, behind the tag that says which.
    func write(to writer: inout StoredWriter)
    /// `nil` when the fields behind `tag` are not what ``write(to:)`` writes. What follows is the caller's.
    init?(tag: UInt8, from reader: inout StoredReader)
}

extension ServiceMessage {
    package var environment: Environment? { nil }
    package var authority: String? { nil }
}

/// The message for one push service, whichever it is.
///
/// One box for each push: it is made where the message is, and copied from then on by a reference.
package struct ProviderMessage: Sendable {
    package let value: any ServiceMessage

    package init(_ value: some ServiceMessage) { self.value = value }

    package var service: PushService { type(of: value).service }
    /// The device token or address.
    package var address: Secret { value.address }
    /// The environment that it names, if any.
    package var environment: Environment? { value.environment }
    /// Of payload and address, in memory.
    package var bytes: Int { value.bytes }

    /// The message as that type; `nil` when it is of another.
    func message<Message: ServiceMessage>() -> Message? {
        // By the type's identity: the runtime's cast costs hundreds of instructions, and a push asks several
        // times.
        guard type(of: value) == Message.self else { return nil }
        return Self.itself(value)
    }

    /// - Parameter message: of that very type.
    private static func itself<Message: ServiceMessage>(_ message: some ServiceMessage) -> Message {
        unsafeBitCast(message, to: Message.self)
    }
}
