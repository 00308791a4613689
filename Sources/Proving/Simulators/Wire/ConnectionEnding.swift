import NIOCore

// GOAWAY in all its forms (RFC 9113 §6.8; docs/push-services.md §2.6 and §3).
extension SimulatorConnection {
    /// Starts the clock of a plan that depends on time.
    func scheduleGoAway() {
        guard let plan = knobs.goAway, let after = plan.after, let context else { return }
        context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(after)) {
            // The plan may have been withdrawn meanwhile.
            if self.knobs.goAway == plan { self.announceGoAway(plan) }
        }
    }

    /// Called before the request with the number `requests` is judged: whether it is among the last ones,
    /// which are not judged.
    func freezeIfPlanned() {
        guard ending.frozenAbove == nil, let plan = knobs.goAway, let number = plan.afterRequests,
            case .below(let count) = plan.lastStream, requests > number - count
        else { return }
        ending.frozenAbove = highestJudged
    }

    func announceGoAwayIfDue() {
        guard let plan = knobs.goAway, let number = plan.afterRequests, requests >= number else { return }
        announceGoAway(plan)
    }

    func announceGoAway(_ plan: GoAwayKnob) {
        guard !ending.isAnnounced, let context else { return }
        ending.isAnnounced = true
        guard case .graceful(let after) = plan.lastStream else {
            ending.frozenAbove = ending.frozenAbove ?? highestJudged
            sendGoAway(plan)
            return
        }
        session.submitShutdownNotice()
        flushSoon()
        context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(after)) {
            self.ending.frozenAbove = self.highestOpened
            self.sendGoAway(plan)
        }
    }

    func sendGoAway(_ plan: GoAwayKnob) {
        guard !ending.isSent, let context else { return }
        ending.isAnnounced = true
        ending.isSent = true
        ending.closesAtOnce = plan.end == .atOnce
        session.submitGoAway(
            lastStream: ending.frozenAbove ?? highestJudged, code: plan.errorCode, debugData: plan.debugData)
        flushSoon()
        context.eventLoop.assumeIsolated().scheduleTask(in: Self.drainLimit) {
            self.context?.close(promise: nil)
        }
    }
}
