import NIOCore
import NIOPosix
import PushModel
import PushTesting

@testable import RelayProgram

/// Where pigeons come home: the simulator. It looks at their rings, and its knob is which lofts are gone.
final class PigeonCoast: ServicePeer {
    fileprivate struct State {
        var rings: Set<String> = []
        var gone: Set<String> = []
        var notes: [String] = []
    }

    private let channel: any Channel
    private let folder: String
    private let state: Noted<State>

    init(for apps: [AppConfiguration], on context: SandboxContext) async throws {
        folder = context.folder
        let state = Noted(State())
        for app in apps where app.pigeon != nil {
            let ring = "ring-\(app.name)"
            try writeFile(Self.ringFile(app, folder), Array(ring.utf8), replacing: true)
            state.change { _ = $0.rings.insert(ring) }
        }
        channel = try await ServerBootstrap(group: context.group)
            .childChannelInitializer { child in
                child.eventLoop.makeCompletedFuture {
                    try child.pipeline.syncOperations.addHandler(
                        PigeonLines(heard: { channel, line in
                            let answer = state.change { $0.judge(line) }
                            channel.writeAndFlush(ByteBuffer(string: answer + "\n"), promise: nil)
                        }))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        self.state = state
    }

    private static func ringFile(_ app: AppConfiguration, _ folder: String) -> String {
        joinPath(folder, "\(app.name).ring")
    }

    private var address: String { "127.0.0.1:\(channel.localAddress?.port ?? 0)" }

    /// Greeting and note of each that came home, in order, once there are so many.
    func notes(_ count: Int) async -> [String] {
        await state.until(for: "pigeons at home") { $0.notes.count >= count }
        return state.value.notes
    }

    func tearDown(_ loft: String) { state.change { _ = $0.gone.insert(loft) } }

    // MARK: As a sandbox's peer

    var urls: [String: String] { ["sandbox-pigeon": "tcp://\(address)"] }

    func point(_ app: inout AppConfiguration) {
        guard var pigeon = app.pigeon else { return }
        pigeon.ringFile = Self.ringFile(app, folder)
        pigeon.coast = BindAddress(address)
        app.pigeon = pigeon
    }

    func stop() async { channel.close(promise: nil) }
}

extension PigeonCoast.State {
    /// `ring loft greeting note`.
    fileprivate mutating func judge(_ line: String) -> String {
        let words = line.split(separator: " ", maxSplits: 2).map(String.init)
        guard words.count == 3 else { return "what?" }
        guard rings.contains(words[0]) else { return "wrong ring" }
        guard !gone.contains(words[1]) else { return "no such loft" }
        notes.append(words[2])
        return "home"
    }
}
