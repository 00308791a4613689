import Foundation
import PushModel

/// A thread of ours that has nothing to do for a moment.
enum Pause {
    static func milliseconds(_ count: Int32) { _ = poll(nil, 0, count) }
}

/// One connection and its thread: takes work, runs it, and comes back after the connection was lost.
struct Connection {
    private let core: PostgresCore

    init(_ core: PostgresCore) { self.core = core }

    func run() {
        var failures = 0
        var wasConnected = false
        while !core.queue.isOver {
            do {
                let session = try core.connector.connect {
                    core.queue.expire()
                    return core.queue.isOver
                }
                if wasConnected || failures > 0 { core.journal.note("database connection is back") }
                (failures, wasConnected) = (0, true)
                serve(session)
            } catch {
                failures += 1
                if failures == 1 {
                    core.journal.note(
                        "database cannot be reached", [.code: ErrorCode(error)], level: .warning)
                }
                backOff(failures)
            }
        }
    }

    /// Doubles, with jitter, so that several processes do not come back at the same moment.
    private func backOff(_ failures: Int) {
        let first = core.limits.reconnectAfter.wholeMilliseconds
        let most = core.limits.reconnectAtMost.wholeMilliseconds
        let span = min(most, first << Int64(min(failures - 1, 16)))
        let end = ContinuousClock.now + .milliseconds(span / 2 + core.world.random(below: span / 2 + 1))
        while ContinuousClock.now < end, !core.queue.isOver {
            core.queue.expire()
            Pause.milliseconds(50)
        }
    }

    private func serve(_ session: PostgresSession) {
        // Locks of an abandoned transaction would block everybody. Reclaiming waits until they are gone; here
        // the next connection tries again.
        do { try core.lost.end(session) } catch { if session.isBroken { return } }
        while true {
            core.queue.expire()
            // Work that is taken from a connection that has ended meanwhile goes back unsent.
            guard let (jobs, kind) = core.queue.take() else {
                if core.queue.isOver || !session.isAlive { return }
                continue
            }
            defer { core.queue.finish(kind) }
            guard session.isAlive else {
                core.queue.putBack(jobs, kind)
                return
            }
            Batch(core: core, jobs: jobs, kind: kind).run(session)
            if session.isBroken { return }
        }
    }
}

/// Calls that were taken together.
struct Batch {
    let core: PostgresCore
    let jobs: [Job]
    let kind: WorkQueue.Kind

    /// Runs them, and answers each.
    func run(_ session: PostgresSession) {
        // Ends, because each round gives up or is one of a few.
        for round in 0...core.limits.retries {
            do {
                for answer in try perform(session) { answer() }
                return
            } catch .refused(let state) where state.mayPass && round < core.limits.retries {
                Pause.milliseconds(Int32(core.world.random(below: 10 << Int64(round))))
            } catch .refused(let state) where (state.blamesValues || state.isDamage) && jobs.count > 1 {
                // The fault is in one of them or in what it looked for; the others must not fail with it.
                for job in jobs { Batch(core: core, jobs: [job], kind: kind).run(session) }
                return
            } catch {
                return fail(error, session)
            }
        }
    }

    private func fail(_ fault: PostgresFault, _ session: PostgresSession) {
        switch fault {
        case .lost(let mayStand):
            if session.isBroken { core.lost.add(session.facts.backend) }
            guard mayStand else { return core.queue.putBack(jobs, kind) }
            core.counts.doubt()
        case .refused(let state):
            // A server that was demoted while we were connected: another host may be the primary now.
            if state.text == "25006" { session.abandon() }
        case .store: break
        }
        for job in jobs { job.fail(fault.error) }
    }

    private func perform(_ session: PostgresSession) throws(PostgresFault) -> [@Sendable () -> Void] {
        switch kind {
        case .find:
            var unreadable: [SeenRecord] = []
            let answers = try PostgresRecords.find(jobs, session, &unreadable)
            core.setAside(unreadable)
            return answers
        case .accept: return try core.accepting.accept(jobs, session)
        case .change: return try core.changing.change(jobs, session)
        case .settle: return try core.settling.settle(jobs, session)
        case .lease, .read, .bulk:
            guard case .single(let run) = jobs[0].work else { return [] }
            return [try run(session)]
        }
    }
}
