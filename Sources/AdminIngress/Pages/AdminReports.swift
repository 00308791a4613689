package import PushModel

/// One question to the running relay whose answer decides whether it is ready.
package struct HealthCheck: Sendable {
    package let name: NoteCode
    /// True when all is well; bounded by ``AdminFace``'s own deadline.
    package let isWell: @Sendable () async -> Bool

    package init(_ name: StaticString, isWell: @escaping @Sendable () async -> Bool) {
        self.name = NoteCode(name)
        self.isWell = isWell
    }
}

/// One lane as an operator sees it: no address, no origin, counts alone.
package struct LaneReport: Sendable, Hashable {
    package enum State: String, Sendable, Hashable, CaseIterable { case open, halted, waiting }

    package var lane: LaneName
    package var state: State
    package var inMemory: Int
    package var parked: Int
    /// Why it is halted, from the closed list of reasons.
    package var reason: Reason?

    package init(_ lane: LaneName, _ state: State, inMemory: Int, parked: Int, reason: Reason? = nil) {
        self.lane = lane
        self.state = state
        self.inMemory = inMemory
        self.parked = parked
        self.reason = reason
    }
}

/// What `/status` and the dashboard show.
package struct StatusReport: Sendable, Hashable {
    package var version: NoteCode
    package var startedAt: UnixTime
    package var lanes: [LaneReport]
    package var outboxRows: Int
    package var outboxBytes: Int

    package init(
        version: NoteCode, startedAt: UnixTime, lanes: [LaneReport], outboxRows: Int, outboxBytes: Int
    ) {
        self.version = version
        self.startedAt = startedAt
        self.lanes = lanes
        self.outboxRows = outboxRows
        self.outboxBytes = outboxBytes
    }
}
