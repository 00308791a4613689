import NIOCore
import NIOPosix
import Synchronization

/// A SOCKS5 proxy that knows names nobody else knows: it leads each target it is told of to a port of this
/// machine, and notes how it was asked.
final class SOCKSServer: Sendable {
    struct Asked: Sendable, Equatable {
        /// 1 IPv4, 3 a name, 4 IPv6.
        var kind: UInt8
        var host: [UInt8]
        var port: Int
        var username: String?
        var password: String?
    }

    /// What it says instead of the good answers.
    struct Script: Sendable {
        /// With the proxy's own method where `nil`.
        var method: [UInt8]?
        var login: [UInt8] = [1, 0]
        var answer: [UInt8] = [5, 0, 0, 3, 4, 0x68, 0x6F, 0x73, 0x74, 0x1F, 0x90]
        var leadsOn = true
    }

    private let port: WirePort
    private let script: Script
    private let notes = Mutex<[Asked]>([])
    private let greetings = Mutex<[[UInt8]]>([])
    var number: Int { port.port }
    var asked: [Asked] { notes.withLock { $0 } }
    /// Methods offered, one list for each connection.
    var methods: [[UInt8]] { greetings.withLock { $0 } }

    init(_ script: Script = Script()) async throws {
        port = try await WirePort()
        self.script = script
    }

    /// Serves one connection up to its end; what comes behind the answer goes to `target` and back.
    func serveOne(leadingTo target: Int) async throws {
        let wire = try await port.accept()
        guard let start = await wire.take(2), let offered = await wire.take(Int(start[1])) else { return }
        greetings.withLock { $0.append(offered) }
        let method: UInt8 = offered.contains(2) ? 2 : 0
        wire.send(script.method ?? [5, method])
        var asked = Asked(kind: 0, host: [], port: 0)
        if method == 2, script.method == nil {
            guard let user = await wire.take(2), let name = await wire.take(Int(user[1])),
                let length = await wire.take(1), let word = await wire.take(Int(length[0]))
            else { return }
            asked.username = String(decoding: name, as: UTF8.self)
            asked.password = String(decoding: word, as: UTF8.self)
            wire.send(script.login)
        }
        guard let head = await wire.take(4) else { return }
        asked.kind = head[3]
        switch head[3] {
        case 1: asked.host = await wire.take(4) ?? []
        case 4: asked.host = await wire.take(16) ?? []
        default:
            guard let length = await wire.take(1) else { return }
            asked.host = await wire.take(Int(length[0])) ?? []
        }
        guard let port = await wire.take(2) else { return }
        asked.port = Int(port[0]) << 8 | Int(port[1])
        let noted = asked
        notes.withLock { $0.append(noted) }
        guard script.leadsOn else { return wire.send(script.answer) }
        let onward = try await Wire.connect(port: target)
        wire.send(script.answer)
        await withTaskGroup { group in
            group.addTask { await Self.pass(wire, onward) }
            group.addTask { await Self.pass(onward, wire) }
        }
    }

    private static func pass(_ from: Wire, _ to: Wire) async {
        while let byte = await from.take(1) { to.send(byte + from.rest()) }
        to.close()
    }

    func close() async throws { try await port.close() }
}
