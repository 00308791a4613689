/// All that the model knows of the calls that an origin owes to other servers: its relay, or a proxy before
/// one. They are no pushes, but custody, turns, breakers and back-off are the same
/// (docs/decisions/0124-calls-of-an-origin.md).
extension PushService {
    package static let uplink = PushService(named: "uplink")
}

extension ProviderMessage {
    package static func uplink(_ message: consuming UplinkMessage) -> ProviderMessage {
        ProviderMessage(message)
    }
    /// `nil` when it is for another service.
    package var uplink: UplinkMessage? { message() }
}

/// One HTTP call that an origin owes. Credentials are not in it: they are added when it leaves, so that no
/// row keeps one.
package struct UplinkMessage: Sendable {
    /// What is asked. Each kind has a lane of its own, so that none waits for another.
    package enum Kind: UInt8, Sendable, CaseIterable {
        case registration = 0, notification = 1, staleList = 2
        /// Entries for a proxy that a phone has named.
        case proxy = 3
    }

    package enum Method: UInt8, Sendable { case get = 0, post = 1, delete = 2 }

    package var kind: Kind
    package var method: Method
    /// Scheme, host and perhaps port of the server, without a slash at the end. Empty: the origin's relay,
    /// wherever the configuration says that it is when the call leaves.
    package var server: String
    /// Begins with a slash; with the query, if any.
    package var path: Secret
    /// Of the body; empty: there is none.
    package var contentType: String
    package var body: Secret
    /// Whose records the answer changes, and what of them: for whoever reads it, and for nobody else.
    package var subject: Secret

    package init(
        kind: Kind, method: Method, server: String, path: Secret, contentType: String, body: Secret,
        subject: Secret
    ) {
        self.kind = kind
        self.method = method
        self.server = server
        self.path = path
        self.contentType = contentType
        self.body = body
        self.subject = subject
    }
}

extension UplinkMessage: ServiceMessage {
    package static let service = PushService.uplink
    package static let reasons: [Reason] = [
        .callRefused, .callPutOff, .serverAsksForTime, .callerRefused, .noStoreForAnswer
    ]
    package static let storedTags: [UInt8] = [7]

    package var address: Secret { subject }
    package var bytes: Int { path.count + body.count + subject.count }

    /// Host and port, by which a server that is out stands apart from the others of its lane.
    package var authority: String? {
        let isPlain = server.hasPrefix("http://")
        let place = server.dropFirst(isPlain ? 7 : server.hasPrefix("https://") ? 8 : 0)
        // Behind an IPv6 address in brackets, colons of which are no port's.
        let behindHost = place.lastIndex(of: "]") ?? place.startIndex
        return place[behindHost...].contains(":") ? String(place) : place + (isPlain ? ":80" : ":443")
    }

    package var storedSize: Int {
        3 * StoredSize.byte + StoredSize.of(server) + StoredSize.of(path) + StoredSize.of(contentType)
            + StoredSize.of(body) + StoredSize.of(subject)
    }

    package func write(to writer: inout StoredWriter) {
        writer.put(Self.storedTags[0])
        writer.put(kind.rawValue)
        writer.put(method.rawValue)
        writer.put(server)
        writer.put(path)
        writer.put(contentType)
        writer.put(body)
        writer.put(subject)
    }

    package init?(tag: UInt8, from reader: inout StoredReader) {
        guard let kind = reader.byte().flatMap({ Kind(rawValue: $0) }),
            let method = reader.byte().flatMap({ Method(rawValue: $0) }), let server = reader.text(),
            let path = reader.secret(), let contentType = reader.text(), let body = reader.secret(),
            let subject = reader.secret()
        else { return nil }
        self.init(
            kind: kind, method: method, server: server, path: path, contentType: contentType, body: body,
            subject: subject)
    }
}

/// The app of an origin's instance that has the calls of one kind.
package struct UplinkOutlet: ServiceOutlet {
    package static let service = PushService.uplink

    package let environment = EnvironmentPolicy.fixed(.production)
    package let kind: UplinkMessage.Kind

    package init(_ kind: UplinkMessage.Kind) { self.kind = kind }

    package static func choose(
        for message: ProviderMessage, among apps: [AppOutlet<UplinkOutlet>]
    ) -> Int? {
        guard let message = message.uplink else { return nil }
        return apps.firstIndex { $0.outlet.kind == message.kind }
    }
}

/// Our words for what other servers answer: theirs stay where they are read.
extension Reason {
    /// For good.
    package static let callRefused = Reason("CallRefused")
    /// This call alone waits; the server serves others.
    package static let callPutOff = Reason("CallPutOff")
    package static let serverAsksForTime = Reason("ServerAsksForTime", .asksForTime)
    /// Our id and key are refused.
    package static let callerRefused = Reason("CallerRefused")
    /// The server has answered, and what follows could not be committed.
    package static let noStoreForAnswer = Reason("NoStoreForAnswer")
}
