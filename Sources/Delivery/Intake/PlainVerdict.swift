package import PushModel

/// The parts of a verdict that belong to no protocol: all that the intake acts on.
///
/// A step that is generic over a protocol's types looks them up each time (decision 0073). So the intake's
/// steps take this type, and only its edge makes the protocol's reply.
struct PlainVerdict: Sendable {
    let pushes: [Push]
    let changes: [Change]
    let pages: [[Change]]
    let charge: OriginCharge?
    let turns: Turns
    let references: PushReferences?
    let wait: ReplyWait
    /// What the reply waits for when the pushes at those places were not taken; `nil`: one such push refuses
    /// the call.
    let withheld: (@Sendable ([Int]) -> ReplyWait)?
}

/// What a reply waits for.
enum ReplyWait: Sendable {
    case commit
    /// First attempts, or the deadline.
    ///
    /// - Parameter undoing: made when one has failed, and what has failed is withdrawn; `nil`: it goes on.
    case firstAttempts(deadline: Duration, undoing: [Change]?)
}

/// What there is to tell in a reply.
struct Told: Sendable {
    /// Of each push that was taken; none where the reply has waited for the commit alone.
    var outcomes: [FirstOutcome]
    /// The pushes at those places were not taken, and the others were; `nil`: all were.
    var withheld: [Int]?
}

/// Why a verdict was not taken in, as ``IntakeRefusal`` tells it.
enum Untaken: Error {
    /// The change at that index, of its page or of ``PlainVerdict/changes``, did not meet its condition.
    case refused(index: Int)
    case overloaded
    case tooFarAhead(retryAfter: Duration)
}

/// The intake's edge. These are no methods of a verdict or of its reply's timing: a method of a generic type
/// is handed that type, and its caller looks it up first.
extension Intake {
    /// - Parameter perMinute: pushes a minute at which those of each origin leave; 0: at once. Divided among
    ///   the relays on one store.
    /// - Parameter client: who called; `nil`: somebody in this process.
    /// - Parameter stay: the call's, where it began before.
    /// - Returns: the reply that the verdict plans, once its commit stands on stable storage.
    package func admit<Reply, Failure>(
        _ verdict: Verdict<Reply, Failure>, instance: ConfiguredName, from client: ClientKey? = nil,
        perMinute: Int = 0, stay: Stay? = nil
    ) async throws(IntakeRefusal<Failure>) -> Reply {
        do throws(Untaken) {
            let told = try await admit(
                plain(verdict), instance: instance, from: client, perMinute: perMinute, stay: stay)
            return reply(to: verdict, telling: told)
        } catch {
            throw refusal(of: verdict, for: error)
        }
    }

    func plain<Reply, Failure>(_ verdict: Verdict<Reply, Failure>) -> PlainVerdict {
        var withheld: (@Sendable ([Int]) -> ReplyWait)?
        if let timing = verdict.withheld { withheld = { Self.wait(timing($0)) } }
        return PlainVerdict(
            pushes: verdict.pushes, changes: verdict.changes, pages: verdict.pages, charge: verdict.charge,
            turns: verdict.turns, references: verdict.references, wait: Self.wait(verdict.reply),
            withheld: withheld)
    }

    func reply<Reply, Failure>(to verdict: Verdict<Reply, Failure>, telling told: Told) -> Reply {
        guard let places = told.withheld, let withheld = verdict.withheld else {
            return Self.reply(verdict.reply, told.outcomes)
        }
        return Self.reply(withheld(places), told.outcomes)
    }

    func refusal<Reply, Failure>(
        of verdict: Verdict<Reply, Failure>, for untaken: Untaken
    ) -> IntakeRefusal<Failure> {
        switch untaken {
        case .refused(let index):
            if let refusal = verdict.refusal { return .refused(refusal(index)) }
            fallthrough
        case .overloaded: return .overloaded(retryAfter: core.limits.overloadedRetryAfter)
        case .tooFarAhead(let retryAfter): return .tooFarAhead(retryAfter: retryAfter)
        }
    }

    private static func wait<Reply>(_ timing: ReplyTiming<Reply>) -> ReplyWait {
        switch timing {
        case .now: .commit
        case .afterFirstAttempt(let deadline, _): .firstAttempts(deadline: deadline, undoing: nil)
        case .withdrawingAfterFirstAttempt(let deadline, let undoing, _):
            .firstAttempts(deadline: deadline, undoing: undoing)
        }
    }

    private static func reply<Reply>(_ timing: ReplyTiming<Reply>, _ outcomes: [FirstOutcome]) -> Reply {
        switch timing {
        case .now(let reply): reply
        case .afterFirstAttempt(_, let compose), .withdrawingAfterFirstAttempt(_, _, let compose):
            compose(outcomes)
        }
    }
}
