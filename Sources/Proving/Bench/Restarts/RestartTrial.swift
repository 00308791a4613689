#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import NIOCore
import NIOPosix
import PushModel
import Simulators
import Synchronization

/// Restarts a relay again and again under load, as a service manager does that holds its socket, and counts
/// the calls that were not answered.
///
/// This process is service manager, origin and push service; the relay is the real program in a process of
/// its own. Nobody asks twice: a call that is refused, reset or left without an answer is a lost message.
package final class RestartTrial: Sendable {
    let plan: RestartPlan
    let shared: TrialRun
    private let say: @Sendable (String) -> Void
    private let state = Mutex(RestartLedger())

    /// - Parameter say: takes a line of progress now and then.
    package init(_ plan: RestartPlan, say: @escaping @Sendable (String) -> Void) {
        self.plan = plan
        self.say = say
        shared = TrialRun(seed: plan.seed)
    }

    func note<Result: Sendable>(_ change: (inout RestartLedger) -> Result) -> Result {
        state.withLock { change(&$0) }
    }

    /// - Returns: the report, and whether every call was answered.
    /// - Throws: `BenchError` when the trial could not be made.
    package func run() async throws -> (report: BenchReport, hasPassed: Bool) {
        let group = MultiThreadedEventLoopGroup.singleton
        let service = try await ChaosService(authority: CertificateAuthority(), group: group)
        var relay = service.makePlan(executable: plan.executable, directory: plan.directory)
        let (socket, port) = try Self.listen()
        defer { if plan.handsSocketOver { close(socket) } }
        if plan.handsSocketOver {
            relay.socket = socket
        } else {
            // The port is the relay's own.
            close(socket)
            relay.port = port
        }
        let stage = try RelayProcess(relay, world: shared.world)
        try await ending {
            await stage.kill()
            await service.stop()
        } after: {
            try await trial(stage, service, port, group)
        }
        return note { [verdict = TrialVerdict(shared.ledger { $0 })] in $0.report(plan, verdict) }
    }

    private func trial(
        _ stage: RelayProcess, _ service: ChaosService, _ port: Int, _ group: any EventLoopGroup
    ) async throws {
        try stage.launch()
        var address = try await stage.ready(within: RelayProcess.startSpan)
        // A socket that was handed over is known here alone; the relay is asked there at all times.
        (address.host, address.port) = ("127.0.0.1", port)
        shared.address = address
        let origin = try await stage.signUp(
            apns: plan.devices, at: [service], through: address, group.next())
        let callers = (0..<(plan.kept + plan.fresh)).map { index -> TrialRun.Part in
            let (loop, keeps) = (group.next(), index < plan.kept)
            let pause = keeps && index % 4 == 3 ? RestartPlan.mostQuiet : RestartPlan.mostPause
            return {
                var caller = RestartCaller(self, origin, loop, keeps: keeps, pause: pause)
                try await caller.run()
            }
        }
        try await shared.live(
            watchers: [{ try await self.shared.collect([service], stage.plan.loads) }], callers: callers
        ) {
            try await restart(stage)
        } after: {
            // What is missing then is in the report.
            _ = try await shared.drain(within: RestartPlan.drainSpan)
            guard await stage.stop(within: RestartPlan.stopSpan) == 0 else {
                throw BenchError(.processFault)
            }
        }
    }

    private func restart(_ stage: RelayProcess) async throws {
        for number in 1...max(1, plan.restarts) {
            try await shared.pause(milliseconds: 50 + shared.random.below(250))
            let began = shared.world.instant()
            note { $0.turn += 1 }
            guard await stage.stop(within: RestartPlan.stopSpan) == 0 else { throw BenchError(.processFault) }
            let span = shared.world.instant() - began
            try stage.launch()
            _ = try await stage.ready(within: RelayProcess.startSpan)
            note { $0.restarted(stoppedIn: span) }
            if number % 20 == 0 { say("\(number) restarts, \(shared.ledger { $0.requests }) calls") }
        }
    }

    /// A listening socket on a free port of loopback, as a service manager opens it.
    private static func listen() throws(BenchError) -> (socket: CInt, port: Int) {
        #if canImport(Glibc)
        let kind = CInt(SOCK_STREAM.rawValue)
        #else
        let kind = SOCK_STREAM
        #endif
        let descriptor = socket(AF_INET, kind, 0)
        guard descriptor >= 0 else { throw BenchError(.processFault) }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, length) == 0
                    && systemListen(descriptor, 4_096) == 0
                    && getsockname(descriptor, address, &length) == 0
            }
        }
        guard isListening else {
            close(descriptor)
            throw BenchError(.processFault)
        }
        return (descriptor, Int(UInt16(bigEndian: name.sin_port)))
    }
}

/// By another name than the method above.
private func systemListen(_ descriptor: CInt, _ backlog: CInt) -> CInt { listen(descriptor, backlog) }
