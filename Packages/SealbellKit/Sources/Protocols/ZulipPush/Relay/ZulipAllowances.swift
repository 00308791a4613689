package import PushModel

/// What callers without credentials may ask for.
package struct ZulipAllowances: Sendable {
    /// Sign-ups, transfers and challenges of one client: each is open to anybody. Anyone who sets up several
    /// servers does so one after the other; a transfer takes three calls.
    package var signUps = Allowance("sign-ups", perMinute: 20)
    /// Fetches of the whole instance: each asks a host of a stranger's choice, or a name server about one.
    package var fetches = Allowance("fetches", perMinute: 60)
    /// Changes of contact, host or key of one server that shows its key: no stranger uses them up. A person
    /// at a command line makes one or two.
    package var changes = Allowance("changes", perMinute: 60)

    package init() {}
}
