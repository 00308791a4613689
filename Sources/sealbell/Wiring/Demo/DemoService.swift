import NIOCore
import Primitives
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
    enum Name: String, CaseIterable, Sendable { case zulip, marmot }

    /// `nil` where the configuration has no instance for it.
    let zulip: ZulipDemo?
    let marmot: MarmotDemo?

    /// Those named, or all.
    func run(_ names: [Name]) async -> [DemoReport] {
        var reports: [DemoReport] = []
        for name in names.isEmpty ? Name.allCases : names {
            switch name {
            case .zulip: reports += await zulip?.run() ?? []
            case .marmot: reports += await marmot?.run() ?? []
            }
        }
        return reports
    }

    /// - Throws: `CommandFailure` when the configuration has nothing to show.
    init(
        _ configuration: RelayConfiguration, urls: [String: String], keys: [String: [String]],
        sandbox: Sandbox,
        group: any EventLoopGroup, world: World
    ) throws(CommandFailure) {
        zulip = Self.zulip(configuration, urls, keys, sandbox, group, world)
        let instance = configuration.instances.first { $0.marmot != nil }
        let key = instance.flatMap { keys[$0.name.text]?.first }.flatMap { XOnlyKey(hex: $0) }
        marmot = key.map { MarmotDemo(server: $0, sandbox: sandbox, group: group, world: world) }
        guard zulip != nil || marmot != nil else {
            throw CommandFailure(
                .configuration,
                "A demo needs a Marmot instance, or a listener without TLS that serves a Zulip instance.")
        }
    }

    private static func zulip(
        _ configuration: RelayConfiguration, _ urls: [String: String], _ keys: [String: [String]],
        _ sandbox: Sandbox, _ group: any EventLoopGroup, _ world: World
    ) -> ZulipDemo? {
        guard
            let listener = configuration.listeners.first(where: { !$0.isAdmin && $0.tls == nil }),
            let url = urls[listener.name.text],
            let port = url.split(separator: ":").last.flatMap({ Int($0) }),
            let instance = listener.serves.first(where: { configuration.instance($0)?.zulip != nil }),
            let key = keys[instance.text]?.first,
            let bundle = configuration.apps.compactMap(\.apns?.bundles.first).first
        else { return nil }
        return ZulipDemo(
            host: listener.bind.host, port: port, bouncerKey: key, bundle: bundle, sandbox: sandbox,
            group: group, world: world)
    }
}

extension String {
    /// Spaces behind it, up to that many characters.
    fileprivate func padded(_ count: Int) -> String {
        self + String(repeating: " ", count: max(0, count - self.count))
    }
}
