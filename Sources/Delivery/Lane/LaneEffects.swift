import PushModel

/// What follows from a change of a lane's state, for others to hear or to do.
extension Lane {
    private func report(_ actions: LaneState.Actions) {
        switch actions.breaker {
        case .none: break
        case .halted(let cause):
            core.laneHalted(name, cause, actions.reason)
            meter.halted(true)
        case .resumed:
            core.laneResumed(name)
            meter.halted(false)
        case .reopened:
            core.laneReopened(name)
            meter.halted(false)
        }
    }

    /// All but the settlements.
    func carryOut(_ actions: LaneState.Actions, isReplaced: Bool) {
        if !isReplaced { report(actions) }
        if !actions.returned.isEmpty { end(moved: actions.returned) }
        switch actions.reach {
        case .none: break
        case .unanswered:
            core.laneUnanswered(name, actions.reason)
            meter.unanswered(true)
        case .over:
            core.laneAnswered(name)
            meter.unanswered(false)
        // This lane no longer sends, which says nothing about the service.
        case .left: meter.unanswered(false)
        }
        if let doubt = actions.spared {
            core.journal.note(
                "registrations spared",
                [
                    .lane: name, .reason: actions.reason,
                    .code: doubt == .share ? ErrorCode("share") : ErrorCode("unproven")
                ],
                level: .warning)
        }
        if actions.spentCalls > 0 { core.observer.callsSpent(name, actions.spentCalls) }
        if actions.givenUp > 0 { core.observer.givenUp(name, actions.givenUp) }
        for (id, outcome) in actions.first { core.firstAttempts.resolve(id, outcome) }
        switch actions.pace {
        case .none: break
        case .slowed:
            core.journal.note("lane slowed", [.lane: name, .reason: actions.reason], level: .warning)
            meter.slowed(true)
        case .atFullSpeed:
            core.journal.note("lane at full speed", [.lane: name])
            meter.slowed(false)
        }
        if actions.custodyEnded > 0 { core.observer.custodyEnded(name, actions.custodyEnded) }
        if actions.volatileEnded > 0 { core.volatile.end(actions.volatileEnded) }
        if actions.volatileEnded > 0 || actions.breaker != .none { drained.ring() }
        if actions.volatileDropped > 0 { core.observer.volatileDropped(name, actions.volatileDropped) }
        if actions.wakesRefill { refill.ring() }
        if actions.wakesSender { sender.ring() }
    }
}
