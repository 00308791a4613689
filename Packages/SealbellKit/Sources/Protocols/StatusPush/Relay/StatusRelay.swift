import Primitives
package import PushModel
package import Secp256k1Keys

/// The relay of this protocol, which Status calls the push notification server.
///
/// It reads the registry and writes nothing: the verdict says what to write.
package struct StatusRelay: AnsweringRole {
    package typealias Inbound = StatusInbound
    /// `nil`: no answer.
    package typealias Reply = StatusReply?
    package typealias Failure = StatusError
    package typealias StatusVerdict = Verdict<StatusReply?, StatusError>
    /// Charges a toll; returns when there is enough again, or `nil` if it was charged.
    package typealias Charge = @Sendable (Toll) -> Duration?

    package let keys: StatusRecordNames
    package let policy: StatusPolicy
    package let identity: Secp256k1KeyPair
    let registry: any Registry
    let allowances: StatusAllowances
    let charge: Charge
    /// How long a report waits for the first attempts.
    let reportWithin: Duration
    let world: World
    /// Who reads registrations.
    let readers = Turns(StatusLimits.readers)

    /// - Parameter charge: charges the cost of a registration, which is known only while it is judged.
    package init(
        instance: ConfiguredName, identity: Secp256k1KeyPair, policy: StatusPolicy = StatusPolicy(),
        registry: any Registry, allowances: StatusAllowances = StatusAllowances(),
        charge: @escaping Charge, reportWithin: Duration = StatusLimits.reportWithin, world: World
    ) {
        self.reportWithin = reportWithin
        keys = StatusRecordNames(instance)
        self.policy = policy
        self.identity = identity
        self.registry = registry
        self.allowances = allowances
        self.charge = charge
        self.world = world
    }

    /// The outcome table applies unchanged.
    package static func override(_ answer: Answer) -> Outcome? { nil }

    package func toll(of inbound: StatusInbound, from client: ClientKey) async throws(StatusError) -> Toll? {
        switch inbound.body {
        // Charged when it has been opened, to the key that it proves.
        case .registration: nil
        // What is looked up.
        case .query(let query): Toll(allowances.queries, of: .everybody, units: max(1, query.people.count))
        case .request(let request):
            Toll(
                allowances.requests, of: .everybody,
                units: max(1, request.requests.count { !isPassedOver($0.type) }))
        }
    }

    /// Clients ask again if no answer comes.
    package static func isAskedOnce(_ inbound: StatusInbound) -> Bool { false }

    /// Judges one message.
    ///
    /// - Throws: `.doesNotOpen` and `.repeated`, which are not answered; the others are answered with what
    ///   ``reply(to:refusing:)`` says.
    package func receive(_ inbound: StatusInbound) async throws(StatusError) -> StatusVerdict {
        switch inbound.body {
        case .registration(let box): try await register(box, inbound)
        case .query(let query): try await answer(query, inbound)
        case .request(let request): try await push(request, inbound)
        }
    }

    /// The answer to a message that the role or the store refused.
    package func reply(to inbound: StatusInbound, refusing error: StatusError) -> StatusReply? {
        let fault: PushNotificationRegistrationResponse.Fault
        switch error.code {
        case .doesNotOpen where policy.isStatusGo: fault = .malformedMessage
        case .malformedMessage, .malformedRegistration, .refusedGrant: fault = .malformedMessage
        case .outdatedVersion: fault = .versionMismatch
        case .unsupportedTokenType: fault = .unsupportedTokenType
        case .overloaded: fault = .internalError
        // A sender over its share is not answered: an answer would cost more than the request.
        default: return nil
        }
        switch inbound.body {
        case .registration(let box):
            let response = PushNotificationRegistrationResponse(
                success: false, error: fault, requestID: Secret(SHAKE256.hash64(box)))
            return StatusReply(to: inbound.signer, .registration(response))
        // A query without an answer is asked again, and reveals to nobody whether somebody is registered.
        case .query: return nil
        case .request(let request):
            guard request.messageID.count > 0 else { return nil }
            let reports = request.requests.filter { !isPassedOver($0.type) }.map {
                PushNotificationReport(
                    success: false, error: .internalError, publicKey: $0.publicKey,
                    installationID: $0.installationID)
            }
            return StatusReply(
                to: inbound.signer,
                .request(PushNotificationResponse(messageID: request.messageID, reports: reports)))
        }
    }

    // MARK: shared steps

    func find(_ names: [RecordKey]) async throws(StatusError) -> [Record?] {
        do { return try await registry.find(names) } catch { throw StatusError(.overloaded) }
    }

    /// A person's registrations in the order in which they were written, up to a limit that nobody reaches.
    ///
    /// - Parameters:
    ///   - installation: one that is not counted.
    ///   - bytes: how many bytes of rows may be read; what was read is subtracted, and reading stops at zero.
    func registrations(
        of person: Secret, atMost limit: Int, besides installation: Secret? = nil, within bytes: inout Int
    ) async throws(StatusError) -> [StatusRow] {
        var (found, last) = ([StatusRow](), UInt64(0))
        do throws(StoreError) {
            // For a while, rows of ended registrations are among them.
            for _ in 0..<StatusLimits.rowsOfPerson / StatusLimits.rowsAtOnce {
                let page = try await registry.page(
                    .owner(keys.owner(person)), after: last, limit: StatusLimits.rowsAtOnce)
                bytes -= page.reduce(0) { $0 + $1.body.count }
                found += page.compactMap { StatusRow($0) }.filter { row in
                    installation.map { !(row.registration.installationID == $0) } ?? true
                }
                guard found.count < limit, bytes > 0, page.count == StatusLimits.rowsAtOnce,
                    let end = page.last
                else { break }
                last = end.revision
            }
        } catch {
            throw StatusError(.overloaded)
        }
        return Array(found.prefix(limit))
    }

    /// Whether a person has a registration.
    func isRegistered(
        _ person: Secret, besides installation: Secret? = nil
    ) async throws(StatusError) -> Bool {
        // A live one ends the search; the others have no content.
        var bytes = Int.max
        return try await !registrations(of: person, atMost: 1, besides: installation, within: &bytes).isEmpty
    }
}
