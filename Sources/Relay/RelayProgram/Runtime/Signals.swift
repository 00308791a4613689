#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Lets the signals through that a server lives by. A parent that blocks them (test harnesses do, and some
/// supervisors) hands its mask down, and the relay would never hear that it should stop.
func letSignalsThrough() {
    var signals = sigset_t()
    sigemptyset(&signals)
    for signal in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&signals, signal) }
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    // A reader that has gone away is an error of that write, and no reason to end the relay.
    signal(SIGPIPE, SIG_IGN)
}

/// Opens what the parent has closed of standard input, output and error at /dev/null. Otherwise the next file
/// or connection would get the number, and the log would be written into it. Before anything is opened.
func openStandardStreams() {
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
        // The lowest free number is this one, for those below are open by now.
        guard open("/dev/null", O_RDWR) == descriptor else { return }
    }
}
