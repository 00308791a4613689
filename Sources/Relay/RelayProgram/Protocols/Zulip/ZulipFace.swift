import Delivery
import HTTPIngress
import NIOCore
import PushModel
import WireFormats
import ZulipPush

/// The Zulip relay behind HTTP: bytes in, answer out.
struct ZulipFace: HTTPFace {
    private let conversation: ZulipConversation
    private let reception: Reception<ZulipRelay>
    private let events: EventLog

    init(_ conversation: ZulipConversation, _ reception: Reception<ZulipRelay>, events: EventLog) {
        self.conversation = conversation
        self.reception = reception
        self.events = events
    }

    var name: ConfiguredName { reception.instance }

    var routes: [HTTPRoute] {
        ZulipPath.all.enumerated().map { place, path in
            HTTPRoute(
                .exact(path.rawValue), bodyLimitBytes: path.bodyLimitBytes, tag: place,
                takesLeadingSlashes: true)
        }
            // What lies beside them gets this protocol's 404, not the server's.
            + [
                HTTPRoute(
                    .prefix("/api/v1/remotes/"), bodyLimitBytes: ZulipLimits.formBodyBytes,
                    takesLeadingSlashes: true)
            ]
    }

    func respond(to inbound: HTTPInbound) async -> HTTPOutbound {
        do throws(ZulipError) {
            return HTTPOutbound(200, .json, try await answer(inbound).body())
        } catch {
            return refusal(error)
        }
    }

    func judge(head: HTTPInbound) -> HTTPOutbound? {
        do throws(ZulipError) {
            try ZulipConversation.check(
                method: head.method.rawValue, path: head.path, authorization: head.header("authorization"),
                fields: head.headerCount("authorization"))
            return nil
        } catch {
            return refusal(error)
        }
    }

    func refuse(_ refusal: IngressRefusal, tag: Int) -> HTTPOutbound {
        switch refusal {
        case .bodyTooLarge: return self.refusal(ZulipError(.bodyTooLarge))
        case .notFound: return self.refusal(ZulipError(.unknownPath))
        case .overloaded, .noAnswer: return self.refusal(ZulipError(.overloaded))
        case .clientShare: return self.refusal(ZulipError(.rateLimited))
        case .malformed, .headersTooLarge, .slowSender, .unsupportedVersion, .unsupportedTransferCoding,
            .unsupportedExpectation:
            return plainRefusal(refusal)
        }
    }

    private func answer(_ inbound: HTTPInbound) async throws(ZulipError) -> ZulipReply {
        try ZulipConversation.check(fields: inbound.headerCount("authorization"))
        let bytes = inbound.body.readableBytes
        if ZulipConversation.isProvedFirst(bodyBytes: bytes) {
            try await conversation.prove(
                method: inbound.method.rawValue, path: inbound.path,
                authorization: inbound.header("authorization"))
        }
        let request = try inbound.withBody { (body) throws(ZulipError) in
            try conversation.read(
                method: inbound.method.rawValue, path: inbound.path, at: inbound.tag, query: inbound.query,
                authorization: inbound.header("authorization"),
                wantsReferences: inbound.header(ZulipOrigin.referencesField) != nil, body: body)
        }
        inbound.forgetBody()
        do throws(ZulipError) {
            let reply = try await reception.receive(
                request, from: inbound.client, bytes: bytes, by: inbound.answerBy)
            if case .signedUp(created: true) = reply { events.note("origin signed up", [(.instance, name)]) }
            return reply
        } catch {
            if case .signUp = request.call {
                events.note("sign-up refused", [(.instance, name), (.code, ErrorCode(error))])
            }
            throw error
        }
    }

    private func refusal(_ error: ZulipError) -> HTTPOutbound {
        if let note = ZulipConversation.note(of: error) { reception.count(note) }
        let answer = ZulipErrorAnswer(error)
        return HTTPOutbound(answer.status, .json, answer.body, headers: answer.headers)
    }
}
