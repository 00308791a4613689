import PushModel
package import WireFormats

/// What a storage server says to one watch (§10.3).
package enum MonitorAnswer: Sendable, Hashable {
    case watched
    case refused(MonitorRefusal)
}

/// Why a storage server does not watch.
package enum MonitorRefusal: Sendable, Hashable, CaseIterable {
    /// Numbers of its list.
    case arguments, account, namespaces, timestamp, signature, wrongSwarm
    /// A number that its list did not have.
    case other

    package init(number: Int64) {
        self =
            switch number {
            case 1: .arguments
            case 2: .account
            case 3: .namespaces
            case 4: .timestamp
            case 5: .signature
            case 6: .wrongSwarm
            default: .other
            }
    }

    /// Whether no repetition can help: the signature is too old, or is not one.
    package var isForGood: Bool { self == .timestamp || self == .signature }

    /// Metric label.
    package var label: String {
        switch self {
        case .arguments: "arguments"
        case .account: "account"
        case .namespaces: "namespaces"
        case .timestamp: "timestamp"
        case .signature: "signature"
        case .wrongSwarm: "wrong-swarm"
        case .other: "other"
        }
    }
}

/// The reply to `monitor.messages`: one answer, or a list of them in the order of the watches.
package struct MonitorReply: Sendable, Hashable {
    package let answers: [MonitorAnswer]
    /// One dictionary instead of a list: to a list of watches it says that the list could not be read.
    package let isSingle: Bool

    /// - Parameter atMost: watches that were shown; an answer beyond them makes the reply malformed.
    /// - Throws: `.malformedBencode`, `.wrongType`, `.tooLarge`.
    package init(parsing body: UnsafeRawBufferPointer, atMost: Int) throws(FormatError) {
        var reader = BencodeReader(body, depthLimit: SwarmFormLimits.replyDepth)
        isSingle = try reader.peek() == .dictionary
        var answers: [MonitorAnswer] = []
        if isSingle {
            answers.append(try Self.answer(&reader))
        } else {
            try reader.beginList()
            while try reader.nextElement() {
                guard answers.count < atMost else { throw FormatError(.tooLarge) }
                answers.append(try Self.answer(&reader))
            }
        }
        try reader.end()
        self.answers = answers
    }

    private static func answer(_ reader: inout BencodeReader) throws(FormatError) -> MonitorAnswer {
        try reader.beginDictionary()
        var answer: MonitorAnswer?
        if try reader.find("errcode") {
            answer = .refused(MonitorRefusal(number: try reader.readInteger().int64 ?? 0))
        } else if try reader.find("success"), try reader.readInteger().int64 ?? 0 != 0 {
            answer = .watched
        }
        try reader.endDictionary()
        guard let answer else { throw FormatError(.wrongType) }
        return answer
    }
}
