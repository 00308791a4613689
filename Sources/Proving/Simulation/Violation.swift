/// What a relay did wrong.
package struct Violation: Sendable, Hashable, CustomStringConvertible {
    package enum Law: String, Sendable, CaseIterable {
        /// An accepted push ended without an outcome.
        case lost = "an accepted push was lost"
        /// It was sent by a process that had seen its last answer.
        case sentAfterAnswer = "a push was sent again by the process that had its answer"
        /// It was sent by a process that was sending it already.
        case sentAtOnce = "a push was sent twice at once by one process"
        /// It was sent after the store had said that it was settled.
        case sentAfterSettling = "a push was sent after it was settled"
        /// It was sent after its sender had heard that it failed, and will send it again.
        case failedAndSent = "a push was sent after its sender had heard that it failed"
        /// The same bytes as those that failed were met with silence.
        case failedAndSilent = "a request of which something failed was not taken again"
        /// It was processed while the store held it as another's, or not at all.
        case sentByStranger = "a push was sent by a process that did not own it any more"
        /// One notification, offered again within ten minutes, was delivered under two ids.
        case twoNames = "a repeat was delivered as another push"
        case registrationLost = "a registration was lost"
        case falseReply = "a reply named an outcome that no push service gave"
        case notDrained = "a healthy relay did not send what it owed"
        /// Long after all is well again, or beside traffic of others, nobody has tried to send it yet.
        case starved = "a push was not even tried"
        /// A reply that waits for first attempts went out after its deadline.
        case lateReply = "a reply was late"
        /// One push, or one lane without a word of its service, went on too often.
        case tooManyAttempts = "there were too many attempts"
        /// Pushes of a lower class went before one that stood in the store and was due.
        case urgentOvertaken = "an urgent push was overtaken"
        /// With nothing wrong at all, a call did not leave at once.
        case urgentLate = "an urgent push was late"
        /// A push was settled unsent while its custody had long to go.
        case custodyEndedEarly = "custody ended by a wrong clock"
        /// A lane stopped for everybody by the word of one origin.
        case haltedByOne = "one origin halted a lane"
        /// A lane stopped for its credential, which its own service had not refused several times.
        case haltedByStray = "a lane halted without several refusals of its own"
        /// A phone whose quota was full.
        case phoneAskedTooOften = "a phone that was told to wait was asked too often"
        /// One word among acceptances stopped a lane, or another lane's word did.
        case haltedBesideAcceptance = "a lane was halted while its credential was accepted"
        /// An operator was told so, and it was not true.
        case calledSilent = "a lane was called silent while its service answered"
        /// The service speaks, and a push of which nobody knows whether it arrived is sent again and again.
        case tooManyCopies = "a push of unknown fate was sent too often"
        /// The process that sends it had an answer to a request that it had given up.
        case sentAfterLateAnswer = "a push was sent again after its late answer"
        case rangTwice = "a call that may have rung was sent again"
        case slowedByOne = "one device's quota slowed a lane"
        case endedByOlderWord = "a registration was ended by a word about an older token"
        case sentAfterEnd = "a push was sent to a registration after its end"
        case stuck = "the relay stood still"
    }

    package let law: Law
    /// The push's or registration's number in the run.
    package let number: Int

    package var description: String { "\(law.rawValue) (number \(number))" }
}
