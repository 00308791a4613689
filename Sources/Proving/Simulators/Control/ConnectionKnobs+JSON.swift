import PushModel

// Knobs in the form of the control endpoint: one JSON object. Absent members leave their knobs unchanged,
// unknown ones are refused. Spans are whole milliseconds, as their names say; `null` resets a knob.
extension ConnectionKnobs {
    /// - Throws: `.knobNotKnown`; then nothing has been changed.
    mutating func turn(_ tree: JSONTree) throws(SimulatorError) {
        guard let members = tree.members else { throw SimulatorError(.knobNotKnown) }
        var next = self
        for member in members { try next.turn(member.name, member.value) }
        self = next
    }

    private mutating func turn(_ name: String, _ value: JSONTree) throws(SimulatorError) {
        switch name {
        case "headerTableBytes": headerTableBytes = try value.setting()
        case "initialWindowBytes": initialWindowBytes = try value.setting()
        case "frameBytes": frameBytes = try value.setting()
        case "headerListBytes": headerListBytes = try value.setting()
        case "streamsAtStart": streamsAtStart = try value.setting()
        case "streams": streams = try value.setting()
        case "dropsOnRejection": dropsOnRejection = try value.known(value.flag)
        case "withholdsWindow": withholdsWindow = try value.known(value.flag)
        case "ignoresPing": ignoresPing = try value.known(value.flag)
        case "excess": excess = try value.known(value.text.flatMap { Excess(rawValue: $0) })
        case "roundTripMilliseconds": roundTrip = try value.milliseconds()
        case "answerDelayMilliseconds": answerDelay = try AnswerDelay(value)
        case "goAway": goAway = value == .null ? nil : try GoAwayKnob(value)
        case "faults":
            var list: [RequestFault] = []
            for item in try value.known(value.items).prefix(16) { list.append(try RequestFault(item)) }
            faults = list
        case "answers":
            var list: [PreparedAnswer] = []
            for item in try value.known(value.items).prefix(16) { list.append(try PreparedAnswer(item)) }
            answers = list
        default: throw SimulatorError(.knobNotKnown)
        }
    }
}

extension AnswerDelay {
    /// A number: fixed. `{"from","to"}`: uniform. `{"mean"}`: exponential. `null`: none.
    fileprivate init(_ tree: JSONTree) throws(SimulatorError) {
        if tree == .null {
            self = .none
        } else if let mean = tree["mean"] {
            self = .exponential(mean: try mean.milliseconds())
        } else if let from = tree["from"], let to = tree["to"] {
            self = .uniform(try from.milliseconds(), try to.milliseconds())
        } else {
            self = .fixed(try tree.milliseconds())
        }
    }
}

extension GoAwayKnob {
    /// `{"afterRequests", "afterMilliseconds", "lastStream": "lastJudged" | {"below": n} |
    /// {"gracefulMilliseconds": n}, "end": "atOnce" | "whenDrained", "errorCode", "debugData"}`.
    init(_ tree: JSONTree) throws(SimulatorError) {
        self.init()
        for member in try tree.known(tree.members) {
            let value = member.value
            switch member.name {
            case "afterRequests": afterRequests = Int(try value.setting())
            case "afterMilliseconds": after = try value.milliseconds()
            case "errorCode": errorCode = try value.setting()
            case "debugData": debugData = try value.known(value.text)
            case "end": end = try value.known(value.text.flatMap { End(rawValue: $0) })
            case "lastStream":
                if let count = value["below"] {
                    lastStream = .below(count: Int(try count.setting()))
                } else if let span = value["gracefulMilliseconds"] {
                    lastStream = .graceful(after: try span.milliseconds())
                } else {
                    lastStream = try value.known(value.text == "lastJudged" ? .lastJudged : nil)
                }
            default: throw SimulatorError(.knobNotKnown)
            }
        }
    }
}

extension PreparedAnswer {
    /// `{"status", "body": text, "contentType", "retryAfter", "delayMilliseconds", "times",
    /// "isJudged": bool}`, each optional; without a status the service's own answer comes late.
    fileprivate init(_ tree: JSONTree) throws(SimulatorError) {
        self.init(own: .zero)
        isJudged = tree["status"] == nil
        for member in try tree.known(tree.members) {
            let value = member.value
            switch member.name {
            case "status":
                let number = Int(try value.setting())
                status = try tree.known((200...999).contains(number) ? number : nil)
            case "body": body = Array(try tree.known(value.text).utf8.prefix(Self.bodyLimitBytes))
            case "contentType": contentType = try tree.known(value.text)
            case "retryAfter": retryAfter = try tree.known(value.text)
            case "delayMilliseconds": delay = try value.milliseconds()
            case "times": times = value == .null ? nil : Int(try value.setting())
            case "isJudged": isJudged = try tree.known(value.flag)
            default: throw SimulatorError(.knobNotKnown)
            }
        }
    }
}

extension RequestFault {
    /// `{"kind": "neverAnswered" | "killedMidFrame" | "resetAfterAnswer" | {"reset": code},
    /// "on": {"number": n} | {"every": n} | {"share": p}, "isJudged": bool}`.
    fileprivate init(_ tree: JSONTree) throws(SimulatorError) {
        let kind: Kind
        let named = try tree.known(tree["kind"])
        switch named.text {
        case "neverAnswered": kind = .neverAnswered
        case "killedMidFrame": kind = .killedMidFrame
        case "resetAfterAnswer": kind = .resetAfterAnswer
        default: kind = .reset(code: try tree.known(named["reset"]).setting())
        }
        let choice: Choice
        let on = try tree.known(tree["on"])
        if let number = on["number"] {
            choice = .number(Int(try number.setting()))
        } else if let every = on["every"] {
            choice = .every(Int(try every.setting()))
        } else {
            choice = .share(try tree.known(on["share"]).share())
        }
        self.init(kind, on: choice, isJudged: try tree.known(tree["isJudged"]?.flag))
    }
}

extension JSONTree {
    /// The value, or a refusal.
    func known<Value>(_ value: Value?) throws(SimulatorError) -> Value {
        guard let value else { throw SimulatorError(.knobNotKnown) }
        return value
    }

    /// A whole number from 0 to 2³²−1.
    func setting() throws(SimulatorError) -> UInt32 { try known(integer.flatMap { UInt32(exactly: $0) }) }

    /// Whole milliseconds, at most a day.
    func milliseconds() throws(SimulatorError) -> Duration {
        let count = try known(integer)
        guard (0...86_400_000).contains(count) else { throw SimulatorError(.knobNotKnown) }
        return .milliseconds(count)
    }

    /// 0 to 1.
    func share() throws(SimulatorError) -> Double {
        let share = try known(double)
        guard (0...1).contains(share) else { throw SimulatorError(.knobNotKnown) }
        return share
    }
}
