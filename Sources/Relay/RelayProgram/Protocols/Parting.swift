import ServiceLifecycle

/// Stands behind the listeners, so that a stop comes here first: whoever waits for what has not happened yet
/// is answered, and no listener waits for a client that may be gone.
struct Parting: Service {
    private let instances: HostedInstances

    init(_ instances: HostedInstances) { self.instances = instances }

    func run() async throws {
        // Throws only when cancelled, which is the end as well.
        try? await gracefulShutdown()
        for instance in instances.all { instance.answerWaiting() }
    }
}
