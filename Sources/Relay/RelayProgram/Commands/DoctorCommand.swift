import ArgumentParser
import PushModel

/// `sealbell doctor`: looks at everything a relay stands on, and says of each fault what to do.
struct DoctorCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: """
            Examines configuration, credentials, certificates, clock, disk, store, ports, the running relay \
            and the push services' addresses.
            """,
        discussion: """
            Changes nothing and sends no push (with --live, one to nobody), beside a running relay or \
            without one. It asks a running relay for its lanes, alerts and last reload. Ends with 0 when \
            nothing is wrong, 78 when the configuration or a file is wrong, 69 when a port or a push service \
            cannot be reached, otherwise 1.
            """)

    @OptionGroup var options: ConfigurationOptions

    @Flag(help: "Do not contact the push services: no connection leaves this machine.")
    var offline = false

    @Flag(
        help: ArgumentHelp(
            "Also show the push services each app's credentials, with a push to a device that nobody has.",
            discussion: "Google only validates it, and Apple's would be silent: nobody gets anything."))
    var live = false

    @Flag(help: "Answer in JSON.")
    var json = false

    func validate() throws {
        guard !(offline && live) else { throw ValidationError("Either --offline or --live.") }
    }

    func run(_ shell: Shell) async throws -> Ending {
        let configuration: RelayConfiguration
        do throws(ConfigurationError) {
            configuration = try shell.load(options.request())
        } catch {
            let findings = Findings(
                error.lines.map { .fault(.configuration, "configuration", $0) })
            try findings.report(shell, json: json)
            return findings.status
        }
        let findings = Findings(await Doctor(configuration, shell).examine(isOffline: offline, isLive: live))
        try findings.report(shell, json: json)
        return findings.status
    }
}

/// The examination, in the order in which faults should be mended.
struct Doctor {
    let configuration: RelayConfiguration
    let shell: Shell

    init(_ configuration: RelayConfiguration, _ shell: Shell) {
        self.configuration = configuration
        self.shell = shell
    }

    func examine(isOffline: Bool, isLive: Bool = false) async -> [Finding] {
        var findings = [Finding.summary(configuration)] + Finding.warnings(configuration)
        findings += await StartChecks(configuration, shell).all().filter { $0.subject != keysFile }
        findings += OwnerChecks(configuration).check()
        findings += MachineChecks(configuration, shell.world.now).check()
        findings += StoreChecks(configuration, shell.world).check()
        findings += await PostgresChecks(configuration, shell.world).check()
        findings += PortChecks(configuration).check()
        findings += DescriptorChecks(configuration).check()
        findings += await RelayChecks(configuration, shell).check()
        if !isOffline {
            let reach = await ReachChecks(configuration).check()
            findings += reach + ignoredProxy(reach)
        }
        if isLive { findings += await LiveChecks(configuration, shell.world).check() }
        return findings
    }

    /// Where something is out of reach, and the environment names a proxy: other programs take it from there,
    /// the relay from its configuration alone.
    func ignoredProxy(_ reach: [Finding]) -> [Finding] {
        let names = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
        guard configuration.proxy == nil, reach.contains(where: { $0.severity == .fault }),
            let name = names.first(where: { shell.facts.environment[$0]?.isEmpty == false })
        else { return [] }
        return [
            .warning(
                .reach, name,
                "This variable is set, and the relay does not read it: if the way out is a proxy, set proxy "
                    + "in the configuration.")
        ]
    }

    /// Looked at with the machine.
    private var keysFile: String { configuration.store.keysFile }
}
