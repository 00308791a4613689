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
        let underWay = inFlight.count + pending.count + unproved.count
        switch state.tick(at: now, inFlight: underWay, stalled: stalled) {
        case .none: break
        case .ping: session?.ping()
        case .fail(let code): return fail(code)
        case .drain: drain()
        case .leave:
            session?.terminate()
        }
        turn()
    }

    /// Ends what waited too long: in the queue unprocessed; on the wire its fate is unknown once the whole
    /// body had been written, and else it is cancelled.
    func expire(_ now: ContinuousClock.Instant) {
        let allowance = pool.allowance(at: now)
        let waiting = (Array(pending) + unproved).filter { $0.isLate(now, allowance) }
        if !waiting.isEmpty {
            pending.removeAll { $0.isLate(now, allowance) }
            unproved.removeAll { $0.isLate(now, allowance) }
            for slot in waiting { endUnsubmitted(slot, .deadlineExceeded) }
        }
        for slot in inFlight where !slot.resetSent {
            if slot.isOpen {
                if slot.isLate(now, allowance) { giveUp(slot) }
            } else if slot.late != nil {
                guard let begun = slot.begun, now - begun >= options.lateAnswers else { continue }
                endLate(slot, nil)
                reset(slot)
            } else if slot.lateSince.map({ now - $0 >= options.deadline }) ?? true {
                if slot.lateSince == nil { slot.lateSince = now } else { reset(slot) }
            }
        }
    }

    /// A request has met its deadline. If the peer may have acted on it, its stream stays open: a late answer
    /// is the only way to learn its fate.
    func giveUp(_ slot: HTTP2Slot) {
        pool.counters.timeouts.increment()
        guard slot.bodySent else {
            finish(slot, .deadlineExceeded, .unprocessed)
            return reset(slot)
        }
        let isListened = pool.listens()
        if isListened {
            slot.late = HTTP2LateAnswer()
            listened += 1
        }
        if state.expired(listened: listened) == .drain { drain() }
        finish(slot, .deadlineExceeded, .unknown)
        // The session has read it to its end.
        if isListened { slot.forget() } else { reset(slot) }
    }

    /// A request that was given up is answered, or will not be.
    func endLate(_ slot: HTTP2Slot, _ answer: HTTP2Answer?) {
        guard let late = slot.late else { return }
        slot.late = nil
        listened -= 1
        pool.counters.listened.increment(by: -1)
        late.end(answer)
    }

    /// Late answers are no longer waited for.
    func stopListening() {
        for slot in inFlight where slot.late != nil {
            endLate(slot, nil)
            reset(slot)
        }
    }

    func drain() {
        guard state.drain(at: world.instant()) else { return }
        drainToTell = true
        // The pool sends requests that have not been submitted elsewhere.
        pending.append(contentsOf: unproved)
        unproved.removeAll()
    }

    func reset(_ slot: HTTP2Slot) {
        slot.resetSent = true
        session?.reset(slot.streamID)
    }

    /// A call that is over, until its sender is resumed. A structure: where a list has pairs, a look at one
    /// part copies both.
    struct Finished {
        let sender: UnsafeContinuation<HTTP2Answer, Never>
        var answer: HTTP2Answer
    }

    func finish(_ slot: HTTP2Slot, _ cause: HTTP2Answer.Cause, _ fate: Answer.Fate) {
        guard let sender = slot.end(fate) else { return }
        if slot.streamID != 0 { unsentBytes -= (slot.request?.body.count ?? 0) - slot.bodyOffset }
        if fate == .unknown { pool.counters.unknownFates.increment() }
        finished.append(Finished(sender: sender, answer: slot.answer(cause, fate)))
        if let late = slot.late { finished[finished.count - 1].answer.late = late }
    }

    func remove(_ slot: HTTP2Slot) {
        guard slot.index >= 0, let last = inFlight.popLast() else { return }
        if last !== slot {
            inFlight[slot.index] = last
            last.index = slot.index
        }
        slot.index = -1
        slot.forget()
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
        let unsubmitted = unproved + Array(pending) + queued
        let isIdle = unsubmitted.isEmpty && !inFlight.contains(where: \.isOpen)
        for slot in inFlight {
            endLate(slot, nil)
            finish(slot, .connectionLost, slot.bodySent ? .unknown : .unprocessed)
        }
        for slot in unsubmitted { endUnsubmitted(slot, .connectionLost) }
        inFlight.removeAll()
        pending.removeAll()
        unproved.removeAll()
        session = nil
        pool.ended(tag, proved: state.proved, idle: isIdle, because: code)
        for ended in finished { ended.sender.resume(returning: ended.answer) }
        finished.removeAll()
    }
}
