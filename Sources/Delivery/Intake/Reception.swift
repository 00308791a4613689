package import PushModel

/// The way in of one instance: makes an answer of what a face has parsed. It decides whose share a call uses,
/// how long it is held, what is counted and when it is owed, in one place for every protocol that answers.
package struct Reception<Role: AnsweringRole>: Sendable {
    package let instance: ConfiguredName
    package let role: Role
    private let intake: Intake
    private let pushesPerMinute: Int
    private let tolls: Tolls
    private let note: @Sendable (NoteCode) -> Void

    /// - Parameters:
    ///   - pushesPerMinute: of each origin that has no quota of its own; 0: no limit (docs/configuration.md).
    ///   - tolls: those of the reception that this one replaces, if there was one.
    ///   - note: called for everything that the role and the face count.
    package init(
        _ role: Role, of instance: ConfiguredName, intake: Intake, pushesPerMinute: Int, tolls: Tolls,
        note: @escaping @Sendable (NoteCode) -> Void = { _ in }
    ) {
        self.instance = instance
        self.role = role
        self.intake = intake
        self.pushesPerMinute = pushesPerMinute
        self.tolls = tolls
        self.note = note
    }

    /// Judges a call, and takes in what follows from it.
    ///
    /// - Parameters:
    ///   - bytes: what the call keeps in memory while it is held.
    ///   - by: when the listener answers the peer in the call's place; `nil`: never.
    /// - Returns: the reply, once what it promises stands on stable storage.
    /// - Throws: the refusal to answer with.
    package func receive(
        _ inbound: Role.Inbound, from client: ClientKey, bytes: Int, by: ContinuousClock.Instant? = nil
    ) async throws(Role.Failure) -> Role.Reply {
        let stay = intake.stay(bytes: bytes, by: by)
        if role.mayCost(inbound), let toll = try await role.toll(of: inbound, from: client),
            let wait = tolls.take(toll)
        {
            throw .rateLimited(retryAfter: wait)
        }
        let verdict: Role.Judged
        do throws(Role.Failure) { verdict = try await role.receive(inbound) } catch {
            verdict = try await judgeAgain(inbound, stay, after: error)
        }
        for code in verdict.notes { note(code) }
        do throws(Untaken) {
            // Counted only now, when the origin has proved who it is: nobody can use up another's share.
            let told = try await intake.admit(
                intake.plain(verdict), instance: instance, from: client,
                perMinute: verdict.quota ?? pushesPerMinute, stay: stay)
            return intake.reply(to: verdict, telling: told)
        } catch {
            throw refusal(of: verdict, for: error)
        }
    }

    private func refusal(of verdict: Role.Judged, for untaken: Untaken) -> Role.Failure {
        switch intake.refusal(of: verdict, for: untaken) {
        case .refused(let refusal): refusal
        case .overloaded(let retryAfter): .overloaded(retryAfter: retryAfter)
        case .tooFarAhead(let retryAfter): .rateLimited(retryAfter: retryAfter)
        }
    }

    /// Undoes a call of which its peer is about to hear that it failed, so that the same bytes are taken
    /// again. While the store is out for a moment this is tried again (decision 0070).
    ///
    /// - Parameters:
    ///   - bytes: what the call keeps in memory meanwhile.
    ///   - end: until when the reply may wait.
    package func undo(_ changes: [Change], bytes: Int, until end: ContinuousClock.Instant) async {
        let longest = intake.stay(bytes: bytes)
        await intake.undo(changes, in: Stay(until: min(end, longest.until), bytes: bytes))
    }

    /// Counts something that the face has seen.
    package func count(_ code: NoteCode) { note(code) }

    /// A call that its peer makes only once waits while the store is out.
    private func judgeAgain(
        _ inbound: Role.Inbound, _ stay: Stay, after error: Role.Failure
    ) async throws(Role.Failure) -> Role.Judged {
        guard Role.isAskedOnce(inbound) else { throw error }
        return try await intake.hold(stay, after: error, while: { $0.isOverloaded }) {
            () throws(Role.Failure) in
            try await role.receive(inbound)
        }
    }
}

/// The same for a protocol that must store nothing and answers nobody.
package struct VolatileReception<Role: SilentRole>: Sendable {
    package enum Outcome: Sendable {
        case taken(VolatileAdmission)
        /// The relay owes as much as it may. The same inbound may come again.
        case withoutRoom
        case refused(Role.Failure)
    }

    package let instance: ConfiguredName
    package let role: Role
    private let intake: VolatileIntake
    private let note: @Sendable (NoteCount) -> Void

    /// - Parameter note: called for everything that the role counts.
    package init(
        _ role: Role, of instance: ConfiguredName, intake: VolatileIntake,
        note: @escaping @Sendable (NoteCount) -> Void = { _ in }
    ) {
        self.instance = instance
        self.role = role
        self.intake = intake
        self.note = note
    }

    package func receive(_ inbound: Role.Inbound) async -> Outcome {
        let verdict: Role.Judged
        do throws(Role.Failure) { verdict = try await role.receive(inbound) } catch { return .refused(error) }
        let admission = intake.admit(verdict, instance: instance)
        for seen in verdict.notes { note(seen) }
        guard admission.isUntaken else { return .taken(admission) }
        role.release(verdict.held)
        return .withoutRoom
    }
}
