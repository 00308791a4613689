package import Delivery
import NIOCore
package import PushModel
import WireFormats
package import ZulipPush

/// The Zulip relay behind HTTP: bytes in, verdict taken in, answer out.
package struct ZulipFace: HTTPFace {
    package let name: ConfiguredName
    private let relay: ZulipRelay
    private let intake: Intake
    /// Pushes a minute of one origin (docs/configuration.md): the pace at which they leave.
    private let pushesPerMinute: Int
    /// Sign-ups, transfers and challenges a minute of one client: each is open to anybody. Divided among all
    /// relays on the store.
    private let signUps: RateLimiter<ClientKey>
    /// Changes of contact, host or key a minute of one server that shows its key: no stranger uses them up.
    private let changes: RateLimiter<UUIDText>
    private let observe: @Sendable (NoteCode) -> Void

    /// Whoever sets up several servers does so one after the other; a transfer takes three calls.
    package static let signUpsPerMinute = 20
    /// Fetches a minute of the whole instance: each asks a host of a stranger's choice, or a name server
    /// about one.
    package static let fetchesPerMinute = 60
    /// A person at a command line makes one or two.
    package static let changesPerMinute = 60

    /// - Parameter pushesPerMinute: of each origin that has no quota of its own; 0: no limit.
    /// - Parameter signUpsPerMinute: of each client.
    /// - Parameter relays: how many relays share the store, and the limits with it.
    /// - Parameter observe: hears what the role counts.
    package init(
        name: ConfiguredName, relay: ZulipRelay, intake: Intake, pushesPerMinute: Int, world: World,
        signUpsPerMinute: Int = ZulipFace.signUpsPerMinute, relays: @escaping @Sendable () -> Int = { 1 },
        observe: @escaping @Sendable (NoteCode) -> Void = { _ in }
    ) {
        self.name = name
        self.relay = relay
        self.intake = intake
        self.pushesPerMinute = pushesPerMinute
        signUps = RateLimiter(perMinute: signUpsPerMinute, world: world, relays: relays)
        changes = RateLimiter(perMinute: Self.changesPerMinute, world: world, relays: relays)
        self.observe = observe
    }

    package var routes: [HTTPRoute] {
        ZulipPath.allCases.map {
            HTTPRoute(
                .exact($0.rawValue), bodyLimitBytes: $0.bodyLimitBytes, takesLeadingSlashes: true)
        }
            // What lies beside them gets this protocol's 404, not the server's.
            + [
                HTTPRoute(
                    .prefix("/api/v1/remotes/"), bodyLimitBytes: ZulipLimits.formBodyBytes,
                    takesLeadingSlashes: true)
            ]
    }

    package func respond(to inbound: HTTPInbound) async -> HTTPOutbound {
        do throws(ZulipError) {
            return HTTPOutbound(200, .json, try await answer(inbound).body())
        } catch {
            return refusal(error)
        }
    }

    package func judge(head: HTTPInbound) -> HTTPOutbound? {
        do throws(ZulipError) {
            try checkCredentialCount(head)
            try ZulipInbound.check(
                method: head.method.rawValue, path: head.path, authorization: head.header("authorization"))
            return nil
        } catch {
            return refusal(error)
        }
    }

    package func refuse(_ refusal: IngressRefusal, tag: Int) -> HTTPOutbound {
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
        let request = try inbound.withBody { (body) throws(ZulipError) in
            try ZulipInbound.parse(
                method: inbound.method.rawValue, path: inbound.path, query: inbound.query,
                authorization: inbound.header("authorization"), contentType: inbound.header("content-type"),
                body: body)
        }
        if request.credentials == nil { try await count(request, of: inbound.client) }
        let stay = intake.stay(bytes: inbound.body.readableBytes)
        let verdict = try await receive(request, stay)
        for note in verdict.notes { observe(note) }
        do throws(IntakeRefusal<ZulipError>) {
            // Counted only now, when the origin has proved who it is: nobody can use up another's share.
            return try await intake.admit(
                verdict, instance: name, perMinute: verdict.quota ?? pushesPerMinute, stay: stay)
        } catch {
            switch error {
            case .refused(let refusal): throw refusal
            case .overloaded(let retryAfter):
                var refusal = ZulipError(.overloaded)
                refusal.retryAfter = retryAfter
                throw refusal
            case .tooFarAhead(let retryAfter):
                var refusal = ZulipError(.rateLimited)
                refusal.retryAfter = retryAfter
                throw refusal
            }
        }
    }

    /// A large body is not read for a stranger: reading the largest takes a core half a second. With a small
    /// one it is cheaper to look up sender, realm and devices together.
    private func proveBeforeReading(_ inbound: HTTPInbound) async throws(ZulipError) {
        guard inbound.body.readableBytes > ZulipLimits.formBodyBytes,
            let credentials = try ZulipInbound.credentials(
                method: inbound.method.rawValue, path: inbound.path,
                authorization: inbound.header("authorization"))
        else { return }
        do throws(ZulipError) { try await relay.prove(credentials) } catch {
            // A store that is out proves nobody a stranger: a `notify` waits for it once it is read.
            guard error.code == .overloaded else { throw error }
        }
    }

    /// Two credentials would let a proxy and this relay believe different ones.
    private func checkCredentialCount(_ inbound: HTTPInbound) throws(ZulipError) {
        if inbound.headerCount("authorization") > 1 { throw ZulipError(.malformedAuthorization) }
    }

    /// Judges a request. A `notify` waits for a store that is out: a server asks for a message once.
    private func receive(
        _ request: ZulipInbound, _ stay: Stay
    ) async throws(ZulipError) -> Verdict<ZulipReply, ZulipError> {
        do throws(ZulipError) { return try await relay.receive(request) } catch {
            guard case .notify = request.call else { throw error }
            return try await intake.hold(stay, after: error, while: { $0.code == .overloaded }) {
                () throws(ZulipError) in
                try await relay.receive(request)
            }
        }
    }

    /// Whoever shows a server's key in a sign-up is that server, and is counted by itself.
    private func count(_ request: ZulipInbound, of client: ClientKey) async throws(ZulipError) {
        if case .signUp(let form) = request.call, try await relay.vouches(for: form) {
            try take(changes.take(1, of: form.id))
        } else {
            try take(signUps.take(1, of: client))
        }
    }

    private func take(_ verdict: RateVerdict) throws(ZulipError) {
        guard case .refused(let retryAfter) = verdict else { return }
        var error = ZulipError(.rateLimited)
        error.retryAfter = retryAfter
        throw error
    }

    private func refusal(_ error: ZulipError) -> HTTPOutbound {
        if error.code == .legacyPath { observe(NoteCode("zulip.legacy-call")) }
        let answer = ZulipErrorAnswer(error)
        return HTTPOutbound(answer.status, .json, answer.body, headers: answer.headers)
    }
}
