import PushModel
import ServiceLifecycle

/// The conversations of `make run`: one notification through each protocol, a table, and what to try next.
struct DemoService: Service {
    let demo: Demo
    let urls: [String: String]
    let state: String
    let shell: Shell

    func run() async throws {
        let reports = await demo.run([])
        DemoReport.table(reports).forEach(shell.out)
        shell.out("")
        for (name, url) in urls.sorted(by: { $0.key < $1.key }) { shell.out("\(name.padded(26)) \(url)") }
        shell.out("")
        shell.out("Try next: curl \(urls["admin"] ?? "ADMIN")/status")
        shell.out("          curl \(urls["sandbox-control"] ?? "CONTROL")/production/deliveries")
        shell.out("          the run file \(joinPath(state, RunFile.name)) holds the CA and the public keys.")
        shell.out("Ctrl-C ends it.")
        // Serving goes on: a service that returned would end the relay.
        try? await gracefulShutdown()  // Throws only when cancelled, which is the end as well.
    }
}

/// Which conversations there are, and how to hold them against a running sandbox.
struct Demo: Sendable {
    private let parts: [(word: String, demo: any ProtocolDemo)]

    /// - Throws: `CommandFailure` when the configuration has nothing to show.
    init(_ hosting: Hosting, on stage: DemoStage) throws(CommandFailure) {
        parts = hosting.protocols.compactMap { spoken in
            spoken.demo(on: stage).map { (spoken.word, $0) }
        }
        guard !parts.isEmpty else {
            throw CommandFailure(
                .configuration,
                "A demo needs an instance that hears its peers: one that a listener without TLS serves, or "
                    + "one that needs no listener.")
        }
    }

    /// Those of the protocols named, or all.
    func run(_ words: [String]) async -> [DemoReport] {
        var reports: [DemoReport] = []
        for part in parts where words.isEmpty || words.contains(part.word) {
            reports += await part.demo.run()
        }
        return reports
    }
}

extension String {
    /// Spaces behind it, up to that many characters.
    fileprivate func padded(_ count: Int) -> String {
        self + String(repeating: " ", count: max(0, count - self.count))
    }
}
