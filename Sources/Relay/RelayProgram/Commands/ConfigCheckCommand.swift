import AdminIngress
import ArgumentParser
import PushModel

/// `[FILE]`, which configuration to read and how, and `--json`.
struct ConfigurationReading: ParsableArguments {
    @Argument(help: "The configuration file; the same as --config.")
    var file: String?

    @OptionGroup var options: ConfigurationOptions

    @Flag(help: "Read it as serve --sandbox would.")
    var sandbox = false

    @Flag(help: "Answer in JSON.")
    var json = false

    func validate() throws {
        if file != nil, options.file != nil {
            throw ValidationError("Name the file once: as an argument or with --config.")
        }
    }

    var request: ConfigurationRequest {
        options.overrides.request(file ?? options.file, isSandbox: sandbox)
    }
}

/// `sealbell config check [FILE]`: reads the configuration as `serve` would, and every file that it names.
struct ConfigCheckCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Checks the configuration and the files it names; changes nothing.",
        discussion: """
            Reads the configuration as serve does, looks at every file that it names, and makes a relay of \
            it in memory: no store is opened, no address taken, nothing sent. Prints a line for each \
            finding: good, warning or FAULT. Ends with 0 when a relay would start with it, with or without \
            warnings; with 1 when it would start but something else is wrong, such as a certificate that \
            has expired; with 78 when it would not start, or a reload would be refused.
            """)

    @OptionGroup var reading: ConfigurationReading

    func run(_ shell: Shell) async throws -> Ending {
        let configuration: RelayConfiguration
        do throws(ConfigurationError) {
            configuration = try shell.load(reading.request)
        } catch {
            if reading.json {
                shell.out(try jsonText(ConfigurationReport(error)))
            } else {
                error.lines.forEach(shell.out)
            }
            return .configuration
        }
        let start = await StartChecks(configuration, shell).all()
        let findings = Findings(
            [Finding.summary(configuration)] + Finding.warnings(configuration) + start
                + OwnerChecks(configuration).check())
        try findings.report(shell, json: reading.json)
        return findings.status
    }
}

/// The JSON form of a configuration that is none.
struct ConfigurationReport: Encodable {
    struct Fault: Encodable {
        let code: String
        let path: String
        let line: Int?
        /// `file`, `default`, `command line`, or the variable's name.
        let source: String
        let sentence: String
    }

    let ok = false
    let faults: [Fault]
    let untold: Int

    private enum CodingKeys: CodingKey { case ok, faults, untold }

    init(_ error: ConfigurationError) {
        faults = error.faults.map { fault in
            Fault(
                code: fault.codeText, path: fault.path, line: fault.line,
                source: fault.source.words { _ in "file" }, sentence: fault.sentence)
        }
        untold = error.untold
    }
}

extension Finding {
    /// What the configuration amounts to.
    static func summary(_ configuration: RelayConfiguration) -> Finding {
        .good(
            .configuration, configuration.file ?? "sandbox",
            "\(counted(configuration.apps.count, "app")), "
                + "\(counted(configuration.instances.count, "instance")), "
                + "\(counted(configuration.listeners.count, "listener")); state in \(configuration.state).")
    }

    static func warnings(_ configuration: RelayConfiguration) -> [Finding] {
        configuration.warnings.map { .warning(.configuration, $0.path, $0.coded) }
    }
}
