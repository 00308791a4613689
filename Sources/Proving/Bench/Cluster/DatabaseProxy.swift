#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import NIOCore
import NIOPosix
import PushModel
import Synchronization

/// The network between a relay and a database server: it carries bytes, falls silent without ending any
/// connection, and resets all of them.
final class DatabaseProxy: Sendable {
    private struct State {
        var isSilent = false
        /// Both ends of each connection.
        var ends: [ObjectIdentifier: any Channel] = [:]
    }

    let port: Int
    private let listener: any Channel
    private let shared: Shared

    private final class Shared: Sendable {
        let state = Mutex(State())

        /// Whether bytes may be read from it now.
        func add(_ channel: any Channel) -> Bool {
            state.withLock { state in
                state.ends[ObjectIdentifier(channel)] = channel
                return !state.isSilent
            }
        }
        func remove(_ channel: any Channel) {
            state.withLock { _ = $0.ends.removeValue(forKey: ObjectIdentifier(channel)) }
        }
        var isSilent: Bool { state.withLock(\.isSilent) }
    }

    private init(_ listener: any Channel, _ shared: Shared) {
        self.listener = listener
        self.shared = shared
        port = listener.localAddress?.port ?? 0
    }

    /// - Parameter target: port of 127.0.0.1.
    /// - Throws: `.unreachable` when no port is free.
    static func start(to target: Int, group: any EventLoopGroup) async throws(BenchError) -> DatabaseProxy {
        let shared = Shared()
        do {
            let listener = try await ServerBootstrap(group: group)
                .childChannelOption(.autoRead, value: false)
                .childChannelInitializer { near in
                    ClientBootstrap(group: near.eventLoop)
                        .channelOption(.autoRead, value: false)
                        .connect(host: "127.0.0.1", port: target)
                        .flatMapThrowing { far in
                            try near.pipeline.syncOperations.addHandler(Splice(far, shared))
                            try far.pipeline.syncOperations.addHandler(Splice(near, shared))
                            for end in [near, far] where shared.add(end) {
                                end.setOption(.autoRead, value: true).whenFailure { _ in
                                    end.close(promise: nil)
                                }
                            }
                        }
                }
                .bind(host: "127.0.0.1", port: 0).get()
            return DatabaseProxy(listener, shared)
        } catch {
            throw BenchError(.unreachable)
        }
    }

    /// From now on nothing passes: what is sent waits, and new connections are taken and not answered.
    func fallSilent() async { await turn(silent: true) }

    /// What waited goes on its way.
    func speakAgain() async { await turn(silent: false) }

    /// Done when every end has heard of it.
    private func turn(silent: Bool) async {
        let ends = shared.state.withLock { state in
            state.isSilent = silent
            return Array(state.ends.values)
        }
        for end in ends {
            // One that is closed reads nothing.
            do { try await end.setOption(.autoRead, value: !silent).get() } catch { end.close(promise: nil) }
        }
    }

    /// Resets every connection, as a firewall does that has forgotten them.
    func cut() {
        let ends = shared.state.withLock { Array($0.ends.values) }
        for end in ends {
            // Closed with no time to say so: the kernel answers with a reset.
            let atOnce = linger(l_onoff: 1, l_linger: 0)
            guard let socket = end as? any SocketOptionProvider else { continue }
            socket.setSoLinger(atOnce).whenComplete { _ in end.close(promise: nil) }
        }
    }

    func stop() async {
        cut()
        // One that is closed already is what is wanted.
        try? await listener.close().get()
    }

    /// One end of a connection: passes on what it reads, and ends with the other.
    private final class Splice: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let partner: any Channel
        private let shared: Shared

        init(_ partner: any Channel, _ shared: Shared) {
            self.partner = partner
            self.shared = shared
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            partner.write(unwrapInboundIn(data), promise: nil)
        }

        func channelReadComplete(context: ChannelHandlerContext) { partner.flush() }

        /// A reader that is slow slows the writer: no more waits here than one read brings.
        func channelWritabilityChanged(context: ChannelHandlerContext) {
            guard !shared.isSilent else { return }
            partner.setOption(.autoRead, value: context.channel.isWritable).whenFailure { [partner] _ in
                partner.close(promise: nil)
            }
        }

        func channelInactive(context: ChannelHandlerContext) {
            shared.remove(context.channel)
            partner.close(promise: nil)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
