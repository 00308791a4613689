import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing

@Suite("Requests that come again at a Status relay", .timeLimit(.minutes(30)))
struct RequestTests {
    private static let server = samplePair(1)
    private static let sender = samplePair(3)
    private static let person = StatusHash.person(samplePair(2).point)
    private static let token = Secret("a6712c96-9eb0-4df5-bc7c-041602a28ea7".utf8)

    /// A phone that is reached through FCM at the address of its own name.
    private static func registration(_ phone: String) -> PushNotificationRegistration {
        var registration = PushNotificationRegistration()
        registration.tokenType = .firebase
        registration.deviceToken = Secret(phone.utf8)
        registration.installationID = Secret(phone.utf8)
        registration.accessToken = token
        registration.enabled = true
        registration.version = 1
        return registration
    }

    /// A request for these phones, as it travels.
    private static func request(_ phones: [String], message: UInt8 = 7) -> Secret {
        let entries = phones.map { phone in
            var entry = PushNotification()
            entry.accessToken = token
            entry.chatID = Secret([UInt8](repeating: 8, count: 64))
            entry.publicKey = person
            entry.installationID = Secret(phone.utf8)
            entry.type = .message
            return entry
        }
        let request = PushNotificationRequest(
            requests: entries, messageID: Secret([UInt8](repeating: message, count: 32)))
        return MetadataMessage.wrap(request.encoded(), .request, by: sender)
    }

    /// What was reported of each phone: `nil` for a success; no list: silence.
    private func reports(
        _ wrapped: Secret, _ rig: StatusRig, isStored: Bool = false
    ) async -> [PushNotificationReport.Fault?]? {
        guard case .request(let response)? = await rig.receive(wrapped, isStored: isStored)?.body else {
            return nil
        }
        return response.reports.map { $0.success ? nil : $0.error }
    }

    private func running(
        phones: [String], _ body: @escaping @Sendable (StatusRig) async throws -> Void
    ) async throws {
        try await StatusRig(identity: Self.server).running { rig in
            for phone in phones { try await rig.keep(Self.registration(phone), of: Self.person) }
            try await body(rig)
        }
    }

    @Test("One of which something failed is taken again byte for byte, and sends what failed and no more")
    func failed() async throws {
        try await running(phones: ["one", "two"]) { rig in
            let wrapped = Self.request(["one", "two"])
            rig.services.answer("two") { _ in Answer(.retry(after: nil), .unknown, sentAt: rig.world.now()) }
            for _ in 0..<2 {
                let known = await reports(wrapped, rig)
                #expect(known == [nil, .internalError])
            }
            rig.services.answer("two", by: nil)
            let known = await reports(wrapped, rig)
            #expect(known == [nil, nil])
            #expect(rig.services.sent.count == 4)
            let third = await reports(wrapped, rig)
            #expect(third == nil)
            #expect(rig.services.sent.count == 4)
        }
    }

    @Test("What has failed is not taken from a node's store, and its sender's own repeat is")
    func stored() async throws {
        try await running(phones: ["one"]) { rig in
            // Also what was first heard from there.
            for (number, isStored) in [false, true].enumerated() {
                let wrapped = Self.request(["one"], message: UInt8(number))
                rig.services.answer("one") { _ in
                    Answer(.retry(after: nil), .unknown, sentAt: rig.world.now())
                }
                let first = await reports(wrapped, rig, isStored: isStored)
                #expect(first == [.internalError])
                rig.services.answer("one", by: nil)
                let known = await reports(wrapped, rig, isStored: true)
                #expect(known == nil)
                #expect(rig.services.sent.count == 2 * number + 1)
                let repeated = await reports(wrapped, rig)
                #expect(repeated == [nil])
                let later = await reports(wrapped, rig, isStored: true)
                #expect(later == nil)
                #expect(rig.services.sent.count == 2 * number + 2)
            }
        }
    }

    @Test("It is taken again for nine minutes from the first time on, and what was taken whole is not")
    func forHowLong() throws {
        let key = StatusRecordNames(StatusRig.instance).request(Secret("id".utf8))
        let start = StatusRig.now
        func memory(
            _ known: Record?, after span: Duration, isStored: Bool = false
        ) -> RequestMemory? {
            RequestMemory(of: key, known, isStored: isStored, now: start + span)
        }
        func record(_ change: Change) -> Record? {
            if case .put(let record, _) = change { record } else { nil }
        }
        let first = try #require(memory(nil, after: .zero))
        #expect(memory(record(first.taken), after: .zero) == nil)
        for change in [first.failed, first.reopened] {
            let again = try #require(memory(record(change), after: .seconds(539)))
            #expect(memory(record(again.taken), after: .seconds(539)) == nil)
            #expect(memory(record(again.reopened), after: .seconds(540)) == nil)
            #expect(memory(record(change), after: .seconds(540)) == nil)
            // From a store it is new once nothing is remembered, which is long after a store is asked for it.
            #expect(memory(record(change), after: .zero, isStored: true) == nil)
            let expiry = try #require(record(change)?.expiresAt)
            #expect(expiry.since(start) == StatusLimits.requestMemory)
        }
        #expect(memory(nil, after: StatusLimits.requestMemory, isStored: true) != nil)
    }

    @Test("A device that no service serves is a failure like others, and may be asked for again")
    func noWay() async throws {
        try await StatusRig(identity: Self.server).running { rig in
            let phone = changing(Self.registration("one")) { $0.tokenType = .apn }
            try await rig.keep(phone, of: Self.person)
            try await rig.keep(Self.registration("two"), of: Self.person)
            let wrapped = Self.request(["one", "two"])
            for _ in 0..<2 {
                let known = await reports(wrapped, rig)
                #expect(known == [.internalError, nil])
            }
            #expect(rig.services.sent.count == 1)
        }
    }

    @Test(
        "A token is refused while its phone registers another: the new registration lives",
        arguments: [nil, "two"])
    func late(_ next: String?) async throws {
        try await running(phones: ["one"]) { rig in
            rig.services.answer("one") { _ in
                Answer(.unregistered(since: nil), .unregisteredFCM, sentAt: rig.world.now())
            }
            rig.services.hold()
            async let told = reports(Self.request(["one"]), rig)
            await rig.services.sent(atLeast: 1)
            rig.pass(.milliseconds(1))
            if let next {
                var other = Self.registration("one")
                (other.deviceToken, other.version) = (Secret(next.utf8), 2)
                try await rig.keep(other, of: Self.person)
            }
            rig.services.release()
            _ = await told
            let known = await reports(Self.request(["one"], message: 8), rig)
            #expect(known == [next == nil ? .notRegistered : nil])
        }
    }

    @Test("What was refused by its token, or has nobody, is not taken again")
    func refused() async throws {
        try await running(phones: ["one"]) { rig in
            rig.services.answer("one") { _ in
                Answer(.unregistered(since: nil), .unknown, sentAt: rig.world.now())
            }
            let wrapped = Self.request(["one", "two"])
            let known = await reports(wrapped, rig)
            #expect(known == [.notRegistered, .notRegistered])
            let again = await reports(wrapped, rig)
            #expect(again == nil)
        }
    }

    @Test(
        "A chat that is blocked triggers nothing, as the text has it; deployed servers push mentions there",
        arguments: [StatusPolicy.Compatibility.standard, .statusGo])
    func blockedChat(_ compatibility: StatusPolicy.Compatibility) async throws {
        let chat = Secret([UInt8](repeating: 8, count: 64))
        let policy = StatusPolicy(compatibility: compatibility)
        try await StatusRig(identity: Self.server, policy: policy).running { rig in
            var phone = Self.registration("one")
            phone.allowedMentionsChatList = [chat]
            phone.blockedChatList = [chat]
            try await rig.keep(phone, of: Self.person)
            for (number, type) in [PushNotification.Kind.message, .mention, .requestToJoinCommunity]
                .enumerated()
            {
                var entry = PushNotification()
                entry.accessToken = Self.token
                entry.chatID = chat
                entry.publicKey = Self.person
                entry.installationID = phone.installationID
                entry.type = type
                let request = PushNotificationRequest(
                    requests: [entry], messageID: Secret([UInt8](repeating: UInt8(number), count: 32)))
                let known = await reports(
                    MetadataMessage.wrap(request.encoded(), .request, by: Self.sender), rig)
                #expect(known == [nil], "who is blocked does not learn of it")
            }
            #expect(rig.services.sent.count == (compatibility == .standard ? 0 : 2))
        }
    }

    @Test(
        "A list of allowed keys without its flag gives the token to nobody, as the text has it",
        arguments: [StatusPolicy.Compatibility.standard, .statusGo])
    func listWithoutFlag(_ compatibility: StatusPolicy.Compatibility) async throws {
        let policy = StatusPolicy(compatibility: compatibility)
        try await StatusRig(identity: Self.server, policy: policy).running { rig in
            var phone = Self.registration("one")
            phone.allowedKeyList = [Secret([UInt8](repeating: 9, count: 64))]
            try await rig.keep(phone, of: Self.person)
            let query = PushNotificationQuery(publicKeys: [Self.person])
            let reply = await rig.receive(MetadataMessage.wrap(query.encoded(), .query, by: Self.sender))
            guard case .query(let response)? = reply?.body, let info = response.info.first else {
                Issue.record("no answer")
                return
            }
            let isByText = compatibility == .standard
            #expect(info.accessToken.count == (isByText ? 0 : 36))
            #expect(info.allowedKeyList.count == (isByText ? 1 : 0))
        }
    }
}
