/// How often ``RelayMonitor`` looks, and what it waits for.
struct MonitorLimits: Sendable {
    /// Between looks: as often as the lease is renewed, and sooner than a person could act.
    var every = Duration.seconds(5)
    /// A store that has not answered for so long is out, whatever it may say later: three looks.
    var patience = Duration.seconds(15)
    /// How long no connection to a push service may come about: as long as a lane waits for a word.
    var unreachableAfter = Duration.seconds(60)
    /// How long an instance may hear nobody: a relay that starts anew is away for less.
    var unheardAfter = Duration.seconds(60)
    /// For how long peers must have been heard before that they refuse nothing counts as their word.
    var calmFor = Duration.seconds(60)
    /// How long pushes whose custody has ended are told of: as long as the reminder of what lasts.
    var endedFor = Duration.seconds(3_600)
}
