import MarmotPush
import NIOCore
import PushModel
import Secp256k1Keys
import WebSocket

/// Carries a ``RelayTalk`` out over a connection.
struct RelayLine {
    private enum Heard: Sendable {
        case message(Result<WebSocketMessage?, WebSocketError>)
        case quiet
    }

    private let connection: WebSocketConnection
    private let relay: NostrRelay
    private let world: World
    private let grace: Duration
    /// Proves who asks; `nil`: nobody in particular does.
    private let identity: Secp256k1KeyPair?
    private var patience = PublishingLimits.strays

    /// Runs `body` over a connection, and closes that; one that has failed is cut.
    static func converse<Result: Sendable>(
        _ connection: WebSocketConnection, _ relay: NostrRelay, _ world: World, grace: Duration,
        proving identity: Secp256k1KeyPair? = nil,
        _ body: (inout RelayLine) async throws(WebSocketError) -> Result
    ) async throws(WebSocketError) -> Result {
        var line = RelayLine(connection, relay, world, grace: grace, proving: identity)
        do throws(WebSocketError) {
            let result = try await body(&line)
            await connection.close()
            return result
        } catch {
            connection.abort()
            throw error
        }
    }

    private init(
        _ connection: WebSocketConnection, _ relay: NostrRelay, _ world: World, grace: Duration,
        proving identity: Secp256k1KeyPair?
    ) {
        self.identity = identity
        self.connection = connection
        self.relay = relay
        self.world = world
        self.grace = grace
    }

    /// - Parameters:
    ///   - text: the wish, as it is said.
    ///   - hear: told every message.
    /// - Throws: what ended the connection.
    mutating func run(
        _ talk: RelayTalk, asking text: Secret, _ hear: (NostrMessage.FromRelay) -> Void
    ) async throws(WebSocketError) -> RelayTalk.Verdict {
        var talk = talk
        var action = talk.take(.opened)
        // Ends: messages are bounded by ``patience``, and silence ends a talk after three pauses.
        while true {
            switch action {
            case .ask: try await send(text)
            case .prove(let challenge):
                let proof = AuthEvent.make(
                    relay: relay.url, challenge: challenge, at: world.now().seconds,
                    by: identity ?? .generate(world), auxiliary: world.randomBytes(32))
                talk.proved(proof.id)
                try await send(NostrMessage.FromClient.authenticate(proof).serialized())
            case .end(let verdict): return verdict
            case nil: break
            }
            let event = try await next(within: talk.isPressed ? grace : nil)
            if case .said(let message) = event { hear(message) }
            action = talk.take(event)
        }
    }

    /// The next message, however long it takes; `nil` when the connection has ended.
    mutating func message() async throws(WebSocketError) -> NostrMessage.FromRelay? {
        patience = PublishingLimits.strays
        if case .said(let message) = try await next(within: nil) { return message }
        return nil
    }

    private func send(_ text: Secret) async throws(WebSocketError) {
        try await connection.send(.text(text.reveal { ByteBuffer(bytes: $0) }))
    }

    /// The next message that is one.
    private mutating func next(within pause: Duration?) async throws(WebSocketError) -> RelayTalk.Event {
        let end = pause.map { world.instant() + $0 }
        while patience > 0 {
            switch await heard(until: end) {
            case .quiet: return .quiet
            case .message(let result):
                guard let message = try result.get() else { return .ended }
                patience -= 1
                guard case .text(let bytes) = message,
                    // What is no message is passed over.
                    let said = try? bytes.withUnsafeReadableBytes({ try NostrMessage.FromRelay.parse($0) })
                else { continue }
                return .said(said)
            }
        }
        return .ended
    }

    private func heard(until end: ContinuousClock.Instant?) async -> Heard {
        guard let end else { return .message(await Self.receive(connection)) }
        return await withTaskGroup(of: Heard?.self) { [world, connection] group in
            group.addTask { .message(await Self.receive(connection)) }
            group.addTask {
                // Ends early only when a message came first.
                do { try await world.sleep(end) } catch { return nil }
                return .quiet
            }
            var quiet: Heard?
            for await heard in group {
                guard let heard else { continue }
                group.cancelAll()
                switch heard {
                case .message(.failure(let error)) where error.code == .cancelled && quiet != nil: continue
                // A message that came in the same instant counts: nobody else would read it.
                case .message: return heard
                case .quiet: quiet = heard
                }
            }
            return quiet ?? .message(.failure(WebSocketError(.cancelled)))
        }
    }

    private static func receive(
        _ connection: WebSocketConnection
    ) async -> Result<WebSocketMessage?, WebSocketError> {
        do throws(WebSocketError) { return .success(try await connection.receive()) } catch {
            return .failure(error)
        }
    }
}
