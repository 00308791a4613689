import NIOCore
import NIOHTTP1
import PushModel

/// One request while its body arrives: a state machine without a socket.
///
/// By reference: it is some thirty fields, which every step of the connection would copy.
final class RequestAssembly {
    enum Step: Equatable {
        case goOn
        /// The client waits to be told before it sends the body.
        case sendContinue
        /// Answer now; what is still to come is thrown away.
        case refuse(IngressRefusal)
        /// The same, with the face's own answer to the head.
        case answer
    }

    let head: CheckedHead
    /// `nil` where no face has the path.
    let entry: FaceEntry?
    let tag: Int
    /// When its first byte arrived; of one that waited behind another, when its turn came.
    private let begunAt: ContinuousClock.Instant
    /// The end of its head.
    let startedAt: ContinuousClock.Instant
    let client: ClientKey
    /// The face's answer to the head; then the body is read past and not kept.
    private(set) var headAnswer: HTTPOutbound?
    private let isLoopback: Bool
    private let isSecure: Bool
    private let bodyLimitBytes: Int
    /// Among the bodies that may have to make way.
    private var place: StandingBodies.ID?
    /// Bytes held, each reserved with the listener.
    private(set) var received = 0
    /// Bytes read past.
    private var passed = 0
    private var body: ByteBuffer?

    /// - Parameter socketKey: the client's where no proxy names another.
    init(
        _ head: CheckedHead, _ installed: InstalledRouter, from socket: IPAddress, _ socketKey: ClientKey,
        isTLS: Bool, begunAt: ContinuousClock.Instant?, _ core: ListenerCore
    ) {
        self.head = head
        startedAt = core.world.instant()
        self.begunAt = begunAt ?? startedAt
        let word = installed.proxies.client(behind: socket, head.fields.all)
        if word.isUnread { core.forwardedUnread() }
        client = word.address == socket ? socketKey : core.key(of: word.address)
        isLoopback = socket.isLoopback && word.address.isLoopback && !word.isUnread
        isSecure = isTLS || word.isSecure
        let target = installed.router.match(head.path)
        entry = target.map { installed.entries[$0.face] }
        tag = target?.tag ?? 0
        bodyLimitBytes = target?.bodyLimitBytes ?? 0
    }

    /// The step that follows from the head alone, before a byte of the body is read.
    func first(_ core: ListenerCore) -> Step {
        guard let entry else { return head.hasBody ? .refuse(.notFound) : .goOn }
        guard core.failures.admits(client, entry.face.name, credential) else { return .refuse(.clientShare) }
        guard head.hasBody else { return .goOn }
        if (head.contentLength ?? 0) > bodyLimitBytes { return .refuse(.bodyTooLarge) }
        let length = head.contentLength ?? .max
        if head.awaitsContinue || length > IngressLimits.unjudgedBodyBytes {
            headAnswer = entry.face.judge(head: inbound())
        }
        if headAnswer != nil {
            let isShort = head.contentLength.map { $0 <= IngressLimits.passedBodyBytes } ?? false
            return isShort && !head.awaitsContinue ? .goOn : .answer
        }
        return head.awaitsContinue ? .sendContinue : .goOn
    }

    /// Takes a piece of the body if route, client and listener have room for it.
    ///
    /// - Parameter cut: makes the closure that ends this request when others need its room.
    func take(
        _ piece: ByteBuffer, _ core: ListenerCore, cut: () -> @Sendable () -> Void
    ) -> Step {
        let count = piece.readableBytes
        guard headAnswer == nil else {
            passed += count
            return .goOn
        }
        guard received + count <= bodyLimitBytes else { return .refuse(.bodyTooLarge) }
        let grant = core.reserve(
            count, behind: received, of: client, place: &place,
            isProven: { entry.map { core.failures.isGood(client, $0.face.name, credential) } ?? false },
            cut: cut)
        switch grant {
        case .granted: break
        case .clientFull: return .refuse(.clientShare)
        case .full: return .refuse(.overloaded)
        }
        received += count
        if body == nil {
            body = piece
            // A body in pieces is written into a buffer of its own, doubled as it grows.
        } else {
            body?.writeImmutableBuffer(piece)
        }
        return .goOn
    }

    /// The body is whole.
    ///
    /// - Returns: false when it was dropped meanwhile.
    func end(_ core: ListenerCore) -> Bool {
        guard core.leave(place) else { return false }
        place = nil
        return true
    }

    /// Gives back what it holds.
    func drop(_ core: ListenerCore) {
        if end(core) { core.release(received, of: client) }
        received = 0
    }

    /// When the rest of the body must be here: a grace, and what the bytes so far have earned, but never more
    /// than a body of any size is given.
    func deadline(_ limits: IngressLimits) -> ContinuousClock.Instant {
        let bytes = Int64(received + passed)
        let earned = Duration.milliseconds(bytes * 1000 / Int64(max(1, limits.bodyBytesPerSecond)))
        return startedAt + min(limits.bodyGrace + earned, limits.bodyTotal)
    }

    /// When the answer must be there, of a request whose last byte has come.
    func answerBy(
        _ limits: IngressLimits, completeAt: ContinuousClock.Instant
    ) -> ContinuousClock.Instant {
        max(begunAt + limits.answer, completeAt + limits.answerLeast)
    }

    /// The whole request, with the body, which is not held here any more.
    func whole(answerBy: ContinuousClock.Instant) -> HTTPInbound {
        defer { body = nil }
        return inbound(answerBy: answerBy)
    }

    /// The request as far as it is here.
    private func inbound(answerBy: ContinuousClock.Instant? = nil) -> HTTPInbound {
        HTTPInbound(
            head.verb, path: head.path, query: head.query, fields: head.fields, body: body ?? ByteBuffer(),
            client: client, isLoopback: isLoopback, isSecure: isSecure, tag: tag, answerBy: answerBy)
    }

    /// The credential of the request.
    var credential: String? { entry.flatMap { head.fields.first($0.face.credentialField) } }
}
