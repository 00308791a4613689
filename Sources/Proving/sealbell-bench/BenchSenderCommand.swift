import ArgumentParser
import Bench
import PushModel
import RelayProgram

/// `sealbell-bench sender`.
struct BenchSenderCommand: SealbellCommand {
    enum Service: String, ExpressibleByArgument, CaseIterable { case apns, fcm }

    static let configuration = CommandConfiguration(
        commandName: "sender",
        abstract: "Drives a sender alone against any HTTP/2 sink.",
        discussion: """
            The very provider that the relay sends through, with nothing before it: each request carries an \
            apns-id of its own. What the sink leaves unanswered is sent again and counted.
            """)

    @Option(help: "The sink's name or address.")
    var host: String

    @Option(help: "The sink's port.")
    var port: Int

    @Option(
        name: .customLong("ca"), help: ArgumentHelp("PEM file of the authority to trust.", valueName: "file"))
    var authority: String?

    @Option(help: "How many requests.")
    var requests = 100_000

    @Option(help: "At most so many connections.")
    var connections = 1

    @Option(help: "At most so many streams on a connection.")
    var streams = 100

    @Option(help: "Which push service's requests.")
    var service = Service.apns

    @Option(help: "Requests a second; as many as go when it is not given.")
    var rate: Double?

    @Option(help: "Size of the JSON that goes to the device.")
    var bodyBytes = 400

    @Option(
        name: .customLong("key"),
        help: ArgumentHelp(
            "The .p8 file, or the service account's JSON file; made on the spot when it is not given.",
            valueName: "file"))
    var keyFile: String?

    @Option(
        name: .customLong("tokens"),
        help: ArgumentHelp(
            "Device tokens, one a line, for sinks that know paths; else made on the spot.", valueName: "file")
    )
    var tokenFile: String?

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        var plan = SenderPlan(host: host, port: port)
        plan.requests = requests
        plan.connections = connections
        plan.streams = streams
        plan.service = service == .apns ? .apns : .fcm
        plan.rate = rate
        plan.bodyBytes = bodyBytes
        plan.authority = try authority.map { try secret($0, shell).reveal { Array($0) } }
        plan.key = try keyFile.map { try secret($0, shell) }
        if let tokenFile {
            let text = String(decoding: try secret(tokenFile, shell).reveal { Array($0) }, as: UTF8.self)
            plan.tokens = text.split(separator: "\n").map(String.init)
        }
        return try await explained {
            conclude(try await SenderBench(plan, world: shell.world).run(), json: json, shell)
        }
    }

    private func secret(_ name: String, _ shell: Shell) throws -> Secret {
        let path = joinPath(shell.facts.workingDirectory, name)
        do throws(FileFault) {
            return try readSecret(path, limitBytes: 1 << 20)
        } catch {
            throw CommandFailure(.failed, "\(path): \(error.sentence)")
        }
    }
}
