import NIOCore

/// A request for a simulator to judge: the known fields, each as a range of one byte buffer, and the body.
///
/// It is a class so that a connection can reuse it; it belongs to one event loop (or to one test).
package final class SimulatedRequest {
    /// The fields that any judge reads.
    package enum Field: Int, CaseIterable {
        case method, path, authorization, apnsID, pushType, priority, expiration, collapseID, topic,
            contentType
    }

    /// The most bytes of a body that are kept; further ones are only counted. APNs allows 5,120 and FCM 4,096
    /// bytes of payload, so a larger body can only be refused.
    static let bodyKeptBytes = 64 * 1024

    package private(set) var body: [UInt8] = []
    /// Bytes received, kept or not.
    package private(set) var bodyBytes = 0
    /// An `apns-*` field or `authorization` came twice.
    package private(set) var hasDuplicate = false
    private var storage: [UInt8] = []
    private var ranges: [Range<Int>?] = .init(repeating: nil, count: Field.allCases.count)
    private var otherNames: [[UInt8]] = []
    private let bodyKept: Int

    package init() { bodyKept = Self.bodyKeptBytes }

    /// - Parameter bodyKept: the most bytes of a body that are kept, if requests may be larger than a push.
    init(bodyKept: Int) { self.bodyKept = bodyKept }

    /// For tests: names as on the wire, including pseudo-fields.
    package convenience init(_ fields: [(String, String)], body: [UInt8] = []) {
        self.init()
        for (name, value) in fields { add(name: Array(name.utf8), value: Array(value.utf8)) }
        append(body)
    }

    /// Forgets everything but its memory.
    func reset() {
        body.removeAll(keepingCapacity: true)
        storage.removeAll(keepingCapacity: true)
        otherNames.removeAll(keepingCapacity: true)
        for index in ranges.indices { ranges[index] = nil }
        bodyBytes = 0
        hasDuplicate = false
    }

    /// The value of a field; `nil` if it is absent.
    package subscript(field: Field) -> ArraySlice<UInt8>? {
        guard let range = ranges[field.rawValue] else { return nil }
        return storage[range]
    }

    func add(name: [UInt8], value: [UInt8]) {
        name.withUnsafeBufferPointer { name in
            value.withUnsafeBufferPointer { value in add(name: name, value: value) }
        }
    }

    /// Notes a field. Names are lower case, as HTTP/2 requires.
    func add(name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>) {
        guard let field = Self.field(name) else {
            // An unknown field that begins with apns- must not come twice either. At most 32 are remembered;
            // SETTINGS limits the header list.
            guard name.count > 5, name.prefix(5).elementsEqual("apns-".utf8), otherNames.count < 32 else {
                return
            }
            if otherNames.contains(where: { $0.elementsEqual(name) }) { hasDuplicate = true }
            otherNames.append(Array(name))
            return
        }
        if ranges[field.rawValue] != nil {
            if field != .contentType { hasDuplicate = true }
            return
        }
        let start = storage.count
        storage.append(contentsOf: value)
        ranges[field.rawValue] = start..<storage.count
    }

    func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        bodyBytes += bytes.count
        let room = bodyKept - body.count
        if room > 0 { body.append(contentsOf: bytes.prefix(room)) }
    }

    func append(_ bytes: [UInt8]) {
        bytes.withUnsafeBufferPointer { append($0) }
    }

    private static func field(_ name: UnsafeBufferPointer<UInt8>) -> Field? {
        func matches(_ text: StaticString, _ field: Field) -> Field? {
            for index in 0..<name.count where name[index] != text.utf8Start[index] { return nil }
            return field
        }
        return switch name.count {
        case 5: matches(":path", .path)
        case 7: matches(":method", .method) ?? matches("apns-id", .apnsID)
        case 10: matches("apns-topic", .topic)
        case 12: matches("content-type", .contentType)
        case 13: matches("authorization", .authorization) ?? matches("apns-priority", .priority)
        case 14: matches("apns-push-type", .pushType)
        case 15: matches("apns-expiration", .expiration)
        case 16: matches("apns-collapse-id", .collapseID)
        default: nil
        }
    }
}

/// A simulator's answer to one request.
package struct SimulatedAnswer: Sendable, Equatable {
    /// The answer's effect on the connection's stream limit.
    package enum Weight: Sendable, Equatable {
        case accepted, neutral
        case rejected(withGoodToken: Bool)
    }

    package var status: Int
    /// Sent as `apns-id`; 36 bytes of a UUID.
    package var apnsID: [UInt8]
    /// Sent as `apns-unique-id` if it is not empty.
    package var uniqueID: [UInt8]
    package var contentType: String?
    package var retryAfter: String?
    package var body: [UInt8]
    package var weight: Weight
    /// Not sent before this.
    package var delay: Duration
    /// Over HTTP/1.1 the connection ends instead of an answer.
    package var hangsUp = false

    package init(
        status: Int, apnsID: [UInt8] = [], uniqueID: [UInt8] = [], contentType: String? = nil,
        retryAfter: String? = nil, body: [UInt8] = [], weight: Weight = .neutral,
        delay: Duration = .zero
    ) {
        self.status = status
        self.apnsID = apnsID
        self.uniqueID = uniqueID
        self.contentType = contentType
        self.retryAfter = retryAfter
        self.body = body
        self.weight = weight
        self.delay = delay
    }
}

/// A simulated service's judgement of requests. There is one for each connection, which calls it on its event
/// loop; shared state is behind a lock of the service.
protocol ConnectionJudge: AnyObject {
    func judge(_ request: SimulatedRequest) -> SimulatedAnswer
    /// An answer that is not there at once; `nil`: ``judge(_:)`` has it. It does not fail.
    func later(_ request: SimulatedRequest, on loop: any EventLoop) -> EventLoopFuture<SimulatedAnswer>?
    /// Whether it is a request for a push: prepared answers are for pushes only.
    func isPush(_ request: SimulatedRequest) -> Bool
}

extension ConnectionJudge {
    func later(_ request: SimulatedRequest, on loop: any EventLoop) -> EventLoopFuture<SimulatedAnswer>? {
        nil
    }
    func isPush(_ request: SimulatedRequest) -> Bool { true }
}
