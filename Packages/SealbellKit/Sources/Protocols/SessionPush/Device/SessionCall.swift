package import PushModel
import WireFormats

/// One request to a push server. A value: the app sends it, as it is or in an onion
/// (``OnionServer/request(_:through:_:using:)``).
package struct SessionCall: Sendable {
    package enum Endpoint: String, Sendable, Hashable {
        case subscribe = "/subscribe"
        case unsubscribe = "/unsubscribe"
    }

    /// For ``SessionRoutine/settle(_:_:now:using:)``.
    package let id: UInt64
    /// Always by POST.
    package let endpoint: Endpoint
    /// JSON: one object, or an array of several.
    package let body: Secret

    package init(id: UInt64, endpoint: Endpoint, body: Secret) {
        (self.id, self.endpoint, self.body) = (id, endpoint, body)
    }
}

/// How a call was answered: the status of HTTP, or the code inside an onion's reply; `nil` for no answer at
/// all.
package struct SessionAnswer: Sendable {
    package let status: Int?
    package let body: Secret

    package init(status: Int?, body: Secret = Secret([])) {
        (self.status, self.body) = (status, body)
    }

    /// Nothing came back, or not from the server.
    package static let none = SessionAnswer(status: nil)
}

/// What became of one account's element of a call.
package enum SessionVerdict: Sendable, Hashable {
    case added
    case updated
    /// Taken back. `wasThere`: whether the server knew it.
    case removed(wasThere: Bool)
    /// The server, or its answer for this account, was not to be had: tried again at that time.
    case later(UnixTime)
    /// The server refuses it, with the number of its answer. A subscription is tried again half a day
    /// later, or when something has changed.
    case refused(error: Int64)
    /// The whole call was refused, with this status.
    case refusedCall(status: Int)
}

/// An answer, read element by element (§3.2). Only what says that it succeeded did.
enum ElementAnswer: Sendable, Hashable {
    case added
    case updated
    case removed(wasThere: Bool)
    case refused(Int64)
    case refusedCall(Int)
    /// None, one that cannot be read, or one that says that the server could not look.
    case none

    /// - Parameter count: of the call's elements.
    /// - Returns: as many answers, in their order.
    static func read(_ answer: SessionAnswer, count: Int, _ endpoint: SessionCall.Endpoint)
        -> [ElementAnswer]
    {
        let all = { (element: ElementAnswer) in [ElementAnswer](repeating: element, count: count) }
        switch answer.status {
        case .some(200..<300): break
        case nil, 408, 425, 429, .some(500...): return all(.none)
        case .some(let status): return all(.refusedCall(status))
        }
        // Whatever it was, it is no answer to this call.
        let json = answer.body.reveal { try? JSONValue.parse($0, limitBytes: SessionLimits.answerBytes) }
        switch json {
        case .array(let elements)?:
            // With more than were asked for, nobody knows which is whose.
            guard elements.count <= count else { return all(.none) }
            return elements.map { one($0, endpoint) }
                + [ElementAnswer](repeating: .none, count: count - elements.count)
        case .object?:
            let whole = one(json ?? .null, endpoint)
            // A refusal may concern the body as a whole; a success names no account.
            if case .refused = whole { return all(whole) }
            return count == 1 ? [whole] : all(.none)
        default: return all(.none)
        }
    }

    private static func one(_ json: JSONValue, _ endpoint: SessionCall.Endpoint) -> ElementAnswer {
        guard let members = json.object else { return .none }
        if let error = members["error"], !error.isNull {
            guard let number = error.int64 else { return .none }
            // 2: the service is not there. 3: it did not answer in time. 5: something unexpected.
            return [2, 3, 5].contains(number) ? .none : .refused(number)
        }
        guard members["success"]?.bool == true else { return .none }
        switch endpoint {
        case .subscribe: return members["added"]?.bool == true ? .added : .updated
        case .unsubscribe: return .removed(wasThere: members["removed"]?.bool ?? true)
        }
    }
}
