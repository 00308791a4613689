import Delivery
import HTTPIngress
import NIOCore
import Primitives
import PushModel
import SessionPush

/// The Session relay behind HTTP: subscriptions, in the clear or inside onion requests. Every outcome of the
/// two calls is 200 with JSON (docs/conformance/session.md).
struct SessionFace: HTTPFace {
    /// A larger body is answered away from the event loops: it holds several elements, and each costs two
    /// verifications.
    private static let bytesOnLoop = 2 << 10
    /// Elements of one call that are judged at once. The store commits them together.
    private static let elementsAtOnce = 8

    private let reception: Reception<SessionRelay>
    private let onion: X25519KeyPair
    private let hasPlainHTTP: Bool
    /// Heard by the link to the swarm, which shows what is new.
    private let subscribed: Bell
    /// How long a toll must wait; `nil`: it was taken.
    private let charge: @Sendable (Toll) -> Duration?
    private let world: World

    init(
        _ reception: Reception<SessionRelay>, onion: X25519KeyPair, hasPlainHTTP: Bool, subscribed: Bell,
        charge: @escaping @Sendable (Toll) -> Duration?, world: World
    ) {
        self.reception = reception
        self.onion = onion
        self.hasPlainHTTP = hasPlainHTTP
        self.subscribed = subscribed
        self.charge = charge
        self.world = world
    }

    var name: ConfiguredName { reception.instance }

    private var endpoints: [SessionEndpoint] { hasPlainHTTP ? SessionEndpoint.allCases : [.onion] }

    var routes: [HTTPRoute] {
        endpoints.map { endpoint in
            HTTPRoute(
                .exact(endpoint.rawValue), bodyLimitBytes: endpoint.bodyLimitBytes, tag: Self.tag(endpoint))
        }
    }

    private static func tag(_ endpoint: SessionEndpoint) -> Int {
        switch endpoint {
        case .subscribe: 0
        case .unsubscribe: 1
        case .onion: 2
        }
    }

    private static func endpoint(_ tag: Int) -> SessionEndpoint {
        tag == 2 ? .onion : tag == 1 ? .unsubscribe : .subscribe
    }

    func respond(to inbound: HTTPInbound) async -> HTTPOutbound {
        if let refusal = judge(head: inbound) { return refusal }
        guard inbound.body.readableBytes > Self.bytesOnLoop else { return await answer(inbound) }
        return await withTaskExecutorPreference(globalConcurrentExecutor) { await answer(inbound) }
    }

    func judge(head: HTTPInbound) -> HTTPOutbound? {
        do throws(SessionError) {
            _ = try SessionEndpoint.find(method: head.method.rawValue, path: head.path, in: endpoints)
            return nil
        } catch {
            var answer = HTTPOutbound.text(error.code == .wrongMethod ? 405 : 404, error.sentence)
            if !error.allowedMethods.isEmpty {
                answer.headers = [(name: "allow", value: error.allowedMethods.joined(separator: ", "))]
            }
            return answer
        }
    }

    func refuse(_ refusal: IngressRefusal, tag: Int) -> HTTPOutbound {
        guard refusal == .bodyTooLarge, Self.endpoint(tag) != .onion else { return plainRefusal(refusal) }
        return Self.refusal(SessionError(.bodyTooLarge))
    }

    private static func refusal(_ error: SessionError) -> HTTPOutbound {
        HTTPOutbound(200, .json, CallReply.body(error))
    }

    private func answer(_ inbound: HTTPInbound) async -> HTTPOutbound {
        let endpoint = Self.endpoint(inbound.tag)
        guard endpoint != .onion else { return await answerOnion(inbound) }
        let json = await call(endpoint, by: .plain, from: inbound.client) { read in inbound.withBody(read) }
        return HTTPOutbound(200, .json, json)
    }

    // MARK: Onion requests

    private func answerOnion(_ inbound: HTTPInbound) async -> HTTPOutbound {
        // What has proved nothing costs an exchange of keys before it can be told from the rest.
        if charge(Toll(SessionAllowances.ofOnions, of: .client(inbound.client))) != nil {
            reception.count(NoteCode("session.onions-refused"))
            return plainRefusal(.clientShare)
        }
        let opened: SessionOnion.Opened
        do throws(SessionError) {
            opened = try inbound.withBody { (body) throws(SessionError) in
                try SessionOnion.open(body, key: onion)
            }
        } catch {
            // There is no key to answer with.
            return .text(error.code == .bodyTooLarge ? 413 : 400, error.sentence)
        }
        let sealed: Secret
        if let request = opened.request {
            sealed = await answer(request, opened.reply, from: inbound.client)
        } else {
            reception.count(NoteCode("session.malformed-onion"))
            sealed = opened.reply.malformed(world)
        }
        return HTTPOutbound(200, .octets, sealed.reveal { Array($0) })
    }

    /// An inner request, answered as its endpoint would outside.
    private func answer(
        _ request: InnerRequest, _ reply: OnionReplyKey, from client: ClientKey
    ) async -> Secret {
        let answer: (code: Int, type: String, body: [UInt8])
        do throws(SessionError) {
            let endpoint = try SessionEndpoint.find(
                method: request.method, path: request.path, in: [.subscribe, .unsubscribe])
            let json = await call(endpoint, by: .onion, from: client) { read in request.body.reveal(read) }
            answer = (200, CallReply.contentType, json)
        } catch {
            answer = (
                error.code == .wrongMethod ? 405 : 404, "text/plain; charset=utf-8",
                Array(error.sentence.utf8)
            )
        }
        return answer.body.withUnsafeBytes {
            reply.seal(code: answer.code, contentType: answer.type, body: $0, world)
        }
    }

    // MARK: Calls

    /// Answers a body: one element, or an array of them.
    ///
    /// - Parameter lend: lends the body's bytes.
    private func call(
        _ endpoint: SessionEndpoint, by way: SessionInbound.Way, from client: ClientKey,
        _ lend: ((UnsafeRawBufferPointer) -> Result<SessionCallBody, SessionError>) -> Result<
            SessionCallBody, SessionError
        >
    ) async -> [UInt8] {
        let parsed = lend { bytes in
            do throws(SessionError) { return .success(try SessionCallBody(endpoint, by: way, bytes)) } catch {
                return .failure(error)
            }
        }
        switch parsed {
        case .failure(let error): return CallReply.body(error)
        case .success(let call):
            let results = await take(call.elements, from: client)
            return CallReply.body(results, isArray: call.isArray)
        }
    }

    private typealias Element = Result<SessionInbound, SessionError>
    private typealias Outcome = Result<SessionReply, SessionError>

    /// Judges elements, each by itself. What concerns one account is done in its order.
    private func take(_ elements: [Element], from client: ClientKey) async -> [Outcome] {
        var outcomes: [Outcome] = []
        outcomes.reserveCapacity(elements.count)
        // Ends: each round takes one element at least.
        while outcomes.count < elements.count {
            let round = Self.round(elements[outcomes.count...])
            outcomes += round.count == 1 ? [await take(round[0], from: client)] : await takeAll(round, client)
        }
        let hasNews = outcomes.contains { outcome in
            if case .success(let reply) = outcome { reply == .added || reply == .updated } else { false }
        }
        if hasNews { subscribed.ring() }
        return outcomes
    }

    /// Elements from the first on that have different accounts.
    private static func round(_ elements: ArraySlice<Element>) -> [Element] {
        var round: [Element] = []
        var accounts: [AccountID] = []
        for element in elements.prefix(elementsAtOnce) {
            if case .success(let inbound) = element, let account = inbound.account {
                guard !accounts.contains(where: { $0 == account }) else { break }
                accounts.append(account)
            }
            round.append(element)
        }
        return round
    }

    private func takeAll(_ round: [Element], _ client: ClientKey) async -> [Outcome] {
        await withTaskGroup(of: (Int, Outcome).self) { group in
            for (index, element) in round.enumerated() {
                group.addTask { (index, await take(element, from: client)) }
            }
            var outcomes: [(Int, Outcome)] = []
            for await outcome in group { outcomes.append(outcome) }
            return outcomes.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }

    private func take(_ element: Element, from client: ClientKey) async -> Outcome {
        do throws(SessionError) {
            return .success(
                try await reception.receive(try element.get(), from: client, bytes: Self.elementBytes))
        } catch {
            return .failure(error)
        }
    }

    /// What an element keeps in memory, at most: its token, its namespaces, and a handful of keys.
    private static let elementBytes = 4 << 10
}

extension SessionInbound {
    /// Whose call it is.
    var account: AccountID? {
        switch self {
        case .subscribe(let form, _): form.claim.account
        case .unsubscribe(let form, _): form.claim.account
        case .notified(let push, _): push.account
        }
    }
}
