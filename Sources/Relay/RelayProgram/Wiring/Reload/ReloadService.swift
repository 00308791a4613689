import PushModel
import ServiceLifecycle
import UnixSignals

/// SIGHUP: reads the configuration again. A broken one leaves the old in force, and says so: in the log, by a
/// metric and an alert, and in `run.json` for `sealbell reload`.
struct ReloadService: Service {
    let relay: Relay
    let request: ConfigurationRequest
    let shell: Shell
    let log: LogSink
    let hangups: UnixSignalsSequence
    /// As it was at the start.
    let file: RunFile
    let state: String
    /// Points apps at the sandbox, where there is one.
    let adapt: @Sendable (RelayConfiguration) -> RelayConfiguration

    /// Lines of one reload in the file: the log has all.
    private static let faultsTold = 32

    func run() async throws {
        var file = file
        for await _ in hangups.cancelOnGracefulShutdown() {
            let faults = reload(&file)
            file.reload = RunFile.Reload(
                number: (file.reload?.number ?? 0) + 1, faults: Array(faults.prefix(Self.faultsTold)))
            do throws(FileFault) { try file.write(state: state) } catch {
                log.journal.note("run file not written", [.code: ErrorCode("file")], level: .error)
            }
        }
    }

    /// - Returns: what is wrong, in sentences.
    private func reload(_ file: inout RunFile) -> [String] {
        do {
            let configuration = try shell.load(request)
            let findings = StartChecks(configuration, shell).files()
            guard log.tell(findings) else {
                relay.refuseReload(ErrorCode("file"))
                return findings.filter(\.endsAStart).map { "\($0.subject): \($0.sentence)" }
            }
            let adapted = adapt(configuration)
            try relay.reload(adapted)
            log.change(configuration.log, shell.facts)
            (file.publicKeys, file.apps) = (relay.publicKeys, adapted.bundles)
            file.tokenFile = configuration.adminTokenFile
            return []
        } catch let error as ConfigurationError {
            log.tell(error)
            relay.refuseReload(ErrorCode(error))
            return error.lines
        } catch let failure as CommandFailure {
            for line in failure.lines { log.tell("configuration fault", line, level: .error) }
            relay.refuseReload(ErrorCode("file"))
            return failure.lines
        } catch {
            relay.refuseReload(ErrorCode("listener"))
            return ["A listener's certificate or key cannot be used."]
        }
    }
}
