import Delivery
import HTTPIngress
import NIOCore
import PushModel
import WireFormats
import ZulipPush

/// The Zulip relay behind HTTP: bytes in, answer out.
struct ZulipFace: HTTPFace {
    private let reception: Reception<ZulipRelay>
    private let events: EventLog

    init(_ reception: Reception<ZulipRelay>, events: EventLog) {
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
            try checkCredentialCount(head)
            try ZulipInbound.check(
                method: head.method.rawValue, path: head.path, authorization: head.header("authorization"))
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
        try checkCredentialCount(inbound)
        try await proveBeforeReading(inbound)
        var request = try inbound.withBody { (body) throws(ZulipError) in
            try ZulipInbound.parse(
                method: inbound.method.rawValue, path: inbound.path, at: inbound.tag, query: inbound.query,
                authorization: inbound.header("authorization"), body: body,
                credentials: reception.role.credentials(shownBy:))
        }
        if inbound.header(ZulipOrigin.referencesField) != nil, case .notify = request.call {
            request.references = PushReferences()
        }
        do throws(ZulipError) {
            let reply = try await reception.receive(
                request, from: inbound.client, bytes: inbound.body.readableBytes, by: inbound.answerBy)
            if case .signedUp(created: true) = reply { events.note("origin signed up", [(.instance, name)]) }
            return reply
        } catch {
            if case .signUp = request.call {
                events.note("sign-up refused", [(.instance, name), (.code, ErrorCode(error))])
            }
            throw error
        }
    }

    /// A large body is not read for a stranger: reading the largest takes a core half a second. With a small
    /// one it is cheaper to look up sender, realm and devices together.
    private func proveBeforeReading(_ inbound: HTTPInbound) async throws(ZulipError) {
        guard inbound.body.readableBytes > ZulipLimits.formBodyBytes,
            let credentials = try ZulipInbound.credentials(
                method: inbound.method.rawValue, path: inbound.path,
                authorization: inbound.header("authorization"),
                credentials: reception.role.credentials(shownBy:))
        else { return }
        do throws(ZulipError) { try await reception.role.prove(credentials) } catch {
            // A store that is out proves nobody a stranger: a `notify` waits for it once it is read.
            guard error.isOverloaded else { throw error }
        }
    }

    /// Two credentials would let a proxy and this relay believe different ones.
    private func checkCredentialCount(_ inbound: HTTPInbound) throws(ZulipError) {
        if inbound.headerCount("authorization") > 1 { throw ZulipError(.malformedAuthorization) }
    }

    private func refusal(_ error: ZulipError) -> HTTPOutbound {
        if error.code == .legacyPath { reception.count(NoteCode("zulip.legacy-call")) }
        let answer = ZulipErrorAnswer(error)
        return HTTPOutbound(answer.status, .json, answer.body, headers: answer.headers)
    }
}
