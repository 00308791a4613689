package import PushModel

/// What callers may ask for within a minute. Callers have no credentials here.
package struct NextcloudAllowances: Sendable {
    /// Registrations and removals of one source: each costs a verification and a commit. Many phones stand
    /// behind one address of a carrier.
    package var registrations = Allowance("registrations", perMinute: 600)
    /// The same of one identifier: a phone registers at each start, and some far too often.
    package var ofDevice = Allowance("device", perMinute: 10)
    /// What one source may ask about identifiers without a proof, at all doors together: first registrations
    /// and such with another key, removals, and pushes that name what is not here or are badly signed (of
    /// those, as many as ``unknown(_:)`` takes). Whoever guesses gets two answers a second; behind one
    /// address of a carrier or an office so many phones register for the first time.
    package var guesses = Allowance("guesses", perMinute: 120)
    /// Notifications calls of one source: a server makes one for each notification. A large call takes as
    /// much as its entries by themselves would, 16 a unit.
    package var notifications = Allowance("notifications", perMinute: 6_000)
    /// Identity proofs of one source: each may look through a million app passwords.
    package var proofsOfSource = Allowance("proofs-source", perMinute: 5)
    /// Requests for them: each goes to a host of a stranger's choice. Of one user by one source; of one
    /// instance, whom two a second do no harm; and of all instances that the operator has not named, more
    /// than a hundred sources make together.
    package var proofsOfUser = Allowance("proofs-user", perMinute: 2)
    package var proofsOfInstance = Allowance("proofs-instance", perMinute: 120)
    package var proofsOfAll = Allowance("proofs", perMinute: 600)

    /// Identifiers without any row that are told to one client as `unknown`: spread over the hour by its
    /// minutes, rounded up.
    func unknown(_ policy: NextcloudPolicy) -> Allowance {
        Allowance("unknown", perMinute: (max(0, policy.unknownPerHour) + 59) / 60)
    }

    package init() {}
}
