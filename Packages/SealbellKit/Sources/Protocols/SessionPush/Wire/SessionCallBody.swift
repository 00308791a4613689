import WireFormats

/// The body of `POST /subscribe` or `/unsubscribe`: one element, or an array of them (§3).
///
/// Elements are independent: each is judged, admitted and answered by itself.
package struct SessionCallBody: Sendable {
    package let elements: [Result<SessionInbound, SessionError>]
    package let isArray: Bool

    /// Reads the body. A fault of the whole body is thrown; a fault of one element takes that element's
    /// place.
    ///
    /// - Parameter body: borrowed for the duration of the call.
    /// - Throws: `.bodyTooLarge`, `.malformedBody`, `.tooManyElements`, `.unknownPath` for an onion request.
    package init(
        _ endpoint: SessionEndpoint, by way: SessionInbound.Way, _ body: UnsafeRawBufferPointer
    ) throws(SessionError) {
        guard body.count <= SessionLimits.bodyBytes else { throw SessionError(.bodyTooLarge) }
        guard endpoint != .onion else { throw SessionError(.unknownPath) }
        var elements: [Result<SessionInbound, SessionError>] = []
        var isArray = false
        var isOverfull = false
        do throws(FormatError) {
            var reader = JSONReader(body, depthLimit: SessionLimits.jsonDepth)
            switch try reader.peek() {
            case .object: elements.append(try Self.element(endpoint, way, &reader))
            case .array:
                isArray = true
                try reader.beginArray()
                while try reader.nextElement() {
                    isOverfull = elements.count == SessionLimits.elementsPerCall
                    if isOverfull { break }
                    elements.append(try Self.element(endpoint, way, &reader))
                }
            default: throw FormatError(.wrongType)
            }
            if !isOverfull { try reader.end() }
        } catch {
            throw SessionError(.malformedBody)
        }
        guard !isOverfull else { throw SessionError(.tooManyElements) }
        self.elements = elements
        self.isArray = isArray
    }

    private static func element(
        _ endpoint: SessionEndpoint, _ way: SessionInbound.Way, _ reader: inout JSONReader
    ) throws(FormatError) -> Result<SessionInbound, SessionError> {
        guard try reader.peek() == .object else {
            try reader.skipValue()
            return .failure(SessionError(.malformedBody))
        }
        let fields = try SessionFields(&reader)
        do throws(SessionError) {
            return .success(
                endpoint == .unsubscribe
                    ? .unsubscribe(try UnsubscribeForm(fields), by: way)
                    : .subscribe(try SubscribeForm(fields), by: way))
        } catch {
            return .failure(error)
        }
    }
}

/// The relay's answer to one element.
package enum SessionReply: Sendable, Hashable {
    case added
    case updated
    /// Whether there was anything to remove.
    case removed(Bool)
    /// A storage server's message was taken; no answer is sent. `restAfter`: the account has more rows, after
    /// that revision.
    case taken(restAfter: UInt64?)
}

/// Bodies of answers (§3.2). All of them are sent with status 200, refusals too.
package enum CallReply {
    package static let contentType = "application/json"

    /// - Parameter isArray: whether the call was an array.
    package static func body(_ results: [Result<SessionReply, SessionError>], isArray: Bool) -> [UInt8] {
        var writer = JSONWriter(reserving: 64 * results.count + 2)
        if isArray { writer.beginArray() }
        for result in results {
            switch result {
            case .success(let reply): write(reply, to: &writer)
            case .failure(let error): write(error, to: &writer)
            }
        }
        if isArray { writer.endArray() }
        return writer.bytes
    }

    /// The answer to a call that is refused as a whole.
    package static func body(_ error: SessionError) -> [UInt8] { body([.failure(error)], isArray: false) }

    private static func write(_ reply: SessionReply, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("success", true)
        switch reply {
        case .added:
            writer.member("added", true)
        case .updated:
            writer.member("updated", true)
        case .removed(let wasThere):
            writer.member("removed", wasThere)
        case .taken: break
        }
        writer.member("message", message(reply))
        writer.endObject()
    }

    private static func message(_ reply: SessionReply) -> String {
        switch reply {
        case .added: "Subscribed."
        case .updated: "Subscription renewed."
        case .removed(true): "Unsubscribed."
        case .removed(false): "There was no such subscription."
        case .taken: "Taken."
        }
    }

    private static func write(_ error: SessionError, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("error", error.wireCode)
        writer.member("message", error.sentence)
        writer.endObject()
    }
}
