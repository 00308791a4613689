import Dialling
import NIOCore
import PushModel
import Synchronization

// How requests end without an answer, and how the connection does.
extension HTTP2Connection {
    func tick() {
        guard state.phase != .ended else { return }
        let now = world.instant()
        expire(now)
        let stalled = inFlight.isEmpty && (session?.sendWindowBytes ?? Int.max) < usualBodyBytes
        switch state.tick(at: now, inFlight: inFlight.count + pending.count, stalled: stalled) {
        case .none: break
        case .ping: session?.ping()
        case .fail(let code): return fail(code)
        case .drain: drain()
        case .leave:
            session?.terminate()
        }
        turn()
    }

    /// Ends what waited too long: in the queue unprocessed; on the wire with CANCEL, its fate unknown once
    /// the whole body had been written.
    func expire(_ now: ContinuousClock.Instant) {
        if pending.contains(where: { $0.isLate(now) }) {
            let late = pending.filter { $0.isLate(now) }
            pending.removeAll { $0.isLate(now) }
            for slot in late { endUnsubmitted(slot, .deadlineExceeded) }
        }
        for slot in inFlight where !slot.resetSent {
            if let call = slot.call {
                guard call.deadline <= now else { continue }
                pool.counters.timeouts.increment()
                finish(slot, .deadlineExceeded, slot.bodySent ? .unknown : .unprocessed)
                reset(slot)
            } else if slot.lateSince.map({ now - $0 >= options.requestDeadline }) ?? true {
                if slot.lateSince == nil { slot.lateSince = now } else { reset(slot) }
            }
        }
    }

    func drain() {
        if state.drain(at: world.instant()) { drainToTell = true }
    }

    func reset(_ slot: HTTP2Slot) {
        slot.resetSent = true
        session?.reset(slot.streamID)
    }

    func finish(_ slot: HTTP2Slot, _ cause: HTTP2Answer.Cause, _ fate: Answer.Fate) {
        guard let call = slot.call else { return }
        slot.call = nil
        unsentBytes -= slot.streamID == 0 ? 0 : call.request.body.count - slot.bodyOffset
        if fate == .unknown { pool.counters.unknownFates.increment() }
        finished.append((call.continuation, slot.answer(cause, fate)))
    }

    func remove(_ slot: HTTP2Slot) {
        guard slot.index >= 0, let last = inFlight.popLast() else { return }
        if last !== slot {
            inFlight[slot.index] = last
            last.index = slot.index
        }
        slot.index = -1
        slot.held = nil
        closedCount += 1
    }

    func fail(_ code: HTTP2Error.Code) {
        guard state.phase != .ended else { return }
        end(because: code)
        context?.close(promise: nil)
    }

    /// Ends everything on it; what was written whole has an unknown fate, the rest is unprocessed.
    func end(because code: HTTP2Error.Code?) {
        guard state.phase != .ended else { return }
        state.end()
        dial?.cancel()
        dial = nil
        ticker?.cancel()
        ticker = nil
        let queued = inbox.withLock { inbox in
            inbox.closed = true
            defer { inbox.slots = [] }
            return inbox.slots
        }
        let isIdle = pending.isEmpty && queued.isEmpty && inFlight.allSatisfy { $0.call == nil }
        for slot in inFlight { finish(slot, .connectionLost, slot.bodySent ? .unknown : .unprocessed) }
        for slot in Array(pending) + queued { endUnsubmitted(slot, .connectionLost) }
        inFlight.removeAll()
        pending.removeAll()
        session = nil
        pool.ended(tag, proved: state.proved, idle: isIdle, because: code)
        for (continuation, answer) in finished { continuation.resume(returning: answer) }
        finished.removeAll()
    }
}
