import PushModel

extension APNsKnobs {
    /// - Parameter now: the time from which `shutdownMilliseconds` counts.
    /// - Throws: `.knobNotKnown`; then nothing has been changed.
    mutating func turn(_ tree: JSONTree, now: UnixTime) throws(SimulatorError) {
        var next = self
        for member in try tree.known(tree.members) {
            let value = member.value
            switch member.name {
            case "shutdownMilliseconds":
                next.shutdownUntil = value == .null ? nil : now + (try value.milliseconds())
            case "errorShare": next.errorShare = try value.share()
            case "deviceLimit": next.deviceLimit = value == .null ? nil : Int(try value.setting())
            case "deviceSpanMilliseconds": next.deviceSpan = try value.milliseconds()
            case "learnsDevices": next.learnsDevices = try value.known(value.flag)
            case "strays": next.strays = try value.strayAnswers()
            default: throw SimulatorError(.knobNotKnown)
            }
        }
        self = next
    }
}

extension APNsSimulator: SteeredSimulator {
    package var name: String { environment.rawValue }

    package func turn(_ order: SteeringOrder) throws(SimulatorError) {
        var knobs = knobs
        try knobs.turn(order.tree, now: now)
        let turned = knobs
        turn { $0 = turned }
    }

    package func bind(_ order: SteeringOrder) throws(SimulatorError) {
        let item = order.tree
        let keyID = try item.known(item["keyID"]?.text)
        if item["isRevoked"]?.flag == true { return revoke(keyID: keyID) }
        var environments: Set<APNsEnvironment> = []
        for name in try item.known(item["environments"]?.items) {
            environments.insert(try item.known(name.text.flatMap { APNsEnvironment(rawValue: $0) }))
        }
        try bind(keyID: keyID, to: environments)
    }

    package func register(_ order: SteeringOrder) throws(SimulatorError) {
        let item = order.tree
        let token = try item.known(item["token"]?.text)
        let since = item["sinceMilliseconds"]?.integer.map { UnixTime(milliseconds: $0) } ?? now
        let topics = (item["topics"]?.items ?? []).compactMap(\.text)
        var device = device(token) ?? APNsDevice(topics: topics)
        if !topics.isEmpty { device.topics = topics }
        if let isOnline = item["isOnline"]?.flag { device.isOnline = isOnline }
        switch item["state"]?.text ?? "live" {
        case "live": device.state = .live
        case "removed": device.state = .removed(since: since)
        case "expired": device.state = .expired(since: since)
        case "unknown": return forget(token)
        default: throw SimulatorError(.knobNotKnown)
        }
        register(token, as: device)
    }
}
