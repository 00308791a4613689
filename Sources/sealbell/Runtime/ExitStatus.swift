/// How the process ends (DESIGN §6).
enum ExitStatus: Int32, Sendable, CaseIterable {
    /// Also after a drained SIGTERM.
    case done = 0
    /// What was asked failed.
    case failed = 1
    case usage = 64
    /// A peer or a port is not to be had.
    case unavailable = 69
    /// Our bug.
    case software = 70
    case configuration = 78
}
