import Delivery
import HTTPIngress
import NIOCore
import PushModel
import SessionPush
import WorkPool

/// The Session relay behind HTTP: subscriptions, in the clear or inside onion requests. Every outcome of the
/// two calls is 200 with JSON (docs/conformance/session.md).
struct SessionFace: HTTPFace {
    /// A larger body is answered away from the event loops: it holds several elements, and each costs two
    /// verifications.
    private static let bytesOnLoop = 2 << 10
    private static let onionTag = 1

    private let reception: Reception<SessionRelay>
    private let conversation: SessionConversation
    private let hasPlainHTTP: Bool
    /// Heard by the link to the swarm, which shows what is new.
    private let subscribed: Bell
    /// How long a toll must wait; `nil`: it was taken.
    private let charge: @Sendable (Toll) -> Duration?

    init(
        _ conversation: SessionConversation, _ reception: Reception<SessionRelay>, hasPlainHTTP: Bool,
        subscribed: Bell, charge: @escaping @Sendable (Toll) -> Duration?
    ) {
        self.conversation = conversation
        self.reception = reception
        self.hasPlainHTTP = hasPlainHTTP
        self.subscribed = subscribed
        self.charge = charge
    }

    var name: ConfiguredName { reception.instance }

    private var endpoints: [SessionEndpoint] { hasPlainHTTP ? SessionEndpoint.allCases : [.onion] }

    var routes: [HTTPRoute] {
        endpoints.map { endpoint in
            HTTPRoute(
                .exact(endpoint.rawValue), bodyLimitBytes: endpoint.bodyLimitBytes,
                tag: endpoint == .onion ? Self.onionTag : 0)
        }
    }

    func respond(to inbound: HTTPInbound) async -> HTTPOutbound {
        let endpoint: SessionEndpoint
        do throws(SessionError) { endpoint = try find(inbound) } catch { return Self.unfound(error) }
        guard inbound.body.readableBytes > Self.bytesOnLoop else {
            return await answer(inbound, at: endpoint)
        }
        return await withTaskExecutorPreference(PoolExecutor.shared) {
            await answer(inbound, at: endpoint)
        }
    }

    func judge(head: HTTPInbound) -> HTTPOutbound? {
        do throws(SessionError) { _ = try find(head) } catch { return Self.unfound(error) }
        return nil
    }

    private func find(_ head: HTTPInbound) throws(SessionError) -> SessionEndpoint {
        try SessionEndpoint.find(method: head.method.rawValue, path: head.path, in: endpoints)
    }

    private static func unfound(_ error: SessionError) -> HTTPOutbound {
        var answer = HTTPOutbound.text(error.code == .wrongMethod ? 405 : 404, error.sentence)
        if !error.allowedMethods.isEmpty {
            answer.headers = [(name: "allow", value: error.allowedMethods.joined(separator: ", "))]
        }
        return answer
    }

    func refuse(_ refusal: IngressRefusal, tag: Int) -> HTTPOutbound {
        guard refusal == .bodyTooLarge, tag != Self.onionTag else { return plainRefusal(refusal) }
        return HTTPOutbound(200, .json, CallReply.body(SessionError(.bodyTooLarge)))
    }

    private func answer(_ inbound: HTTPInbound, at endpoint: SessionEndpoint) async -> HTTPOutbound {
        if let toll = SessionConversation.toll(of: endpoint, from: inbound.client), charge(toll) != nil {
            reception.count(SessionConversation.tolled)
            return plainRefusal(.clientShare)
        }
        switch inbound.withBody({ conversation.begin(endpoint, $0) }) {
        case .judge(let call): return Self.outbound(await judge(call, from: inbound.client))
        case .end(let answer, let note):
            if let note { reception.count(note) }
            return Self.outbound(answer)
        }
    }

    private static func outbound(_ answer: SessionConversation.Answer) -> HTTPOutbound {
        switch answer {
        case .json(let body): HTTPOutbound(200, .json, body)
        case .sealed(let reply): HTTPOutbound(200, .octets, reply.reveal { Array($0) })
        case .refused(let status, let error): .text(status, error.sentence)
        }
    }

    // MARK: Elements

    private typealias Call = SessionConversation.Call

    private func judge(_ call: Call, from client: ClientKey) async -> SessionConversation.Answer {
        var call = call
        // Ends: each round takes one element at least.
        while let round = call.round {
            call.took(round.count == 1 ? [await take(round[0], from: client)] : await takeAll(round, client))
        }
        if call.hasNews { subscribed.ring() }
        return call.answer()
    }

    private func takeAll(_ round: [Call.Element], _ client: ClientKey) async -> [Call.Outcome] {
        await withTaskGroup(of: (Int, Call.Outcome).self) { group in
            for (index, element) in round.enumerated() {
                group.addTask { (index, await take(element, from: client)) }
            }
            var outcomes: [(Int, Call.Outcome)] = []
            for await outcome in group { outcomes.append(outcome) }
            return outcomes.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }

    private func take(_ element: Call.Element, from client: ClientKey) async -> Call.Outcome {
        do throws(SessionError) {
            return .success(
                try await reception.receive(try element.get(), from: client, bytes: Call.elementBytes))
        } catch {
            return .failure(error)
        }
    }
}
