import PushModel

extension FCMKnobs {
    /// - Throws: `.knobNotKnown`; then nothing has been changed.
    mutating func turn(_ tree: JSONTree) throws(SimulatorError) {
        var next = self
        for member in try tree.known(tree.members) { try next.turn(member.name, member.value) }
        self = next
    }

    private mutating func turn(_ name: String, _ value: JSONTree) throws(SimulatorError) {
        func limit() throws(SimulatorError) -> Int? { value == .null ? nil : Int(try value.setting()) }
        switch name {
        case "tokenDelayMilliseconds": tokenDelay = try value.milliseconds()
        case "tokenLifeSeconds": tokenLifeSeconds = Int64(try value.setting())
        case "tokenFault": tokenFault = try TokenFault(value)
        case "errorShare": errorShare = try value.share()
        case "unavailableShare": unavailableShare = try value.share()
        case "retryAfter": retryAfter = try RetryAfter(value)
        case "projectMinuteLimit": projectMinuteLimit = try limit()
        case "deviceMinuteLimit": deviceMinuteLimit = try limit()
        case "deviceHourLimit": deviceHourLimit = try limit()
        case "learnsDevices": learnsDevices = try value.known(value.flag)
        case "strays": strays = try value.strayAnswers()
        case "tokenStrays": tokenStrays = try value.strayAnswers()
        default: throw SimulatorError(.knobNotKnown)
        }
    }
}

extension FCMKnobs.RetryAfter {
    /// `null`, `{"seconds": n}` or `{"date": seconds ahead}`.
    fileprivate init(_ tree: JSONTree) throws(SimulatorError) {
        if tree == .null {
            self = .off
        } else if let seconds = tree["seconds"] {
            self = .seconds(Int(try seconds.setting()))
        } else {
            self = .date(secondsAhead: Int(try tree.known(tree["date"]).setting()))
        }
    }
}

extension FCMKnobs.TokenFault {
    /// `null`, `"serverError"`, `"noExpiry"`, `{"tooMany": Retry-After}` or `{"oversized": bytes}`.
    fileprivate init(_ tree: JSONTree) throws(SimulatorError) {
        if tree == .null {
            self = .none
        } else if tree.text == "serverError" {
            self = .serverError
        } else if tree.text == "noExpiry" {
            self = .noExpiry
        } else if let after = tree["tooMany"] {
            self = .tooMany(try FCMKnobs.RetryAfter(after))
        } else {
            self = .oversized(bytes: Int(try tree.known(tree["oversized"]).setting()))
        }
    }
}

extension FCMSimulator: SteeredSimulator {
    package var name: String { "fcm" }

    package func turn(_ order: SteeringOrder) throws(SimulatorError) {
        var knobs = knobs
        try knobs.turn(order.tree)
        let turned = knobs
        turn { $0 = turned }
    }

    package func register(_ order: SteeringOrder) throws(SimulatorError) {
        let item = order.tree
        let token = try item.known(item["token"]?.text)
        let state = item["state"]?.text ?? "live"
        if state == "unknown" { return forget(token) }
        let project = try item.known(item["project"]?.text ?? device(token)?.project)
        register(token, as: FCMDevice(project: project, isLive: state == "live"))
    }
}
