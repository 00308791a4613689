import Foundation
import PushModel
import SQLiteStore
import Simulators
import Testing
import WireFormats
@testable import ZulipPush
@testable import sealbell

/// A value that must be seen nowhere, in every form in which it could be.
struct Canary: Sendable {
    let name: String
    /// Bytes to look for.
    let forms: [[UInt8]]

    /// - Parameter bytes: at least six, so that none is found by chance.
    init(_ name: String, _ bytes: [UInt8]) {
        precondition(bytes.count >= 6, "a canary is long enough to be known")
        self.name = name
        var forms = [bytes]
        // At each of the three places that its first byte can have in base64, without the characters that
        // its neighbours change.
        for shift in 0..<3 {
            let text = Array(
                Base64.text([UInt8](repeating: 0, count: shift) + bytes).utf8.prefix { $0 != 0x3D })
            let first = shift == 0 ? 0 : shift + 1
            let last = (shift + bytes.count).isMultiple(of: 3) ? text.count : text.count - 1
            forms.append(Array(text[first..<last]))
            forms.append(forms[forms.count - 1].map { $0 == 0x2B ? 0x2D : $0 == 0x2F ? 0x5F : $0 })
        }
        let hex = Hex.encode(bytes)
        forms.append(Array(hex.utf8))
        forms.append(Array(hex.uppercased().utf8))
        self.forms = forms
    }

    init(_ name: String, _ text: String) { self.init(name, Array(text.utf8)) }

    /// A text of hex digits, perhaps with hyphens; its bytes are looked for too.
    static func hex(_ name: String, _ text: String) throws -> [Canary] {
        let digits = text.filter { $0 != "-" }
        return [
            Canary(name, text), Canary(name + " without hyphens", digits),
            Canary(name + " as bytes", try Hex.decode(Array(digits.utf8)))
        ]
    }

    func isIn(_ haystack: Data) -> Bool { forms.contains { haystack.range(of: Data($0)) != nil } }
}

@Suite("What a relay has been told is told to nobody", .timeLimit(.minutes(5)))
struct CanaryTests {
    private static func word(_ prefix: String) -> String {
        prefix + Hex.encode((0..<8).map { _ in UInt8.random(in: .min ... .max) })
    }

    /// One server, its realm and two phones, with a canary in each field.
    private struct Cast: Sendable {
        var server: TestServer
        var apple: TestPhone
        var google: TestPhone
        var canaries: [Canary]

        init(_ relay: RunningRelay) throws {
            let host = CanaryTests.word("host") + ".example.org"
            let mail = CanaryTests.word("mail") + "@" + CanaryTests.word("domain") + ".example.org"
            server = TestServer(host, mail: mail, version: CanaryTests.agent)
            server.realm.ownerSecret = CanaryTests.word("owner")
            server.realm.host = CanaryTests.word("realm") + ".example.org"
            server.realm.url = "https://" + CanaryTests.word("url") + ".example.org"
            server.realm.name = CanaryTests.word("name")
            apple = try TestPhone(.apns, relay.bouncerKey)
            google = try TestPhone(.fcm, relay.bouncerKey)
            canaries = [Canary("host", host), Canary("mail", mail), Canary("name", server.realm.name)]
            canaries.append(Canary("realm host", server.realm.host))
            canaries.append(Canary("realm URL", server.realm.url))
            canaries.append(Canary("owner secret", server.realm.ownerSecret))
            canaries += try Canary.hex("organisation", server.origin.id)
            canaries += try Canary.hex("key", server.key.reveal { String(decoding: $0, as: UTF8.self) })
            canaries += try Canary.hex("realm", server.realm.uuid)
            canaries += try Canary.hex("token", apple.token)
            canaries.append(Canary("FCM token", google.token))
            for phone in [apple, google] {
                canaries.append(Canary("token id", phone.group.tokenID.text))
                canaries.append(
                    Canary(
                        "blob", phone.group.sealedRegistration.reveal { String(decoding: $0, as: UTF8.self) })
                )
            }
        }
    }

    private static let forwarded = "2001:db8:c0ff:ee00::beef"
    private static let agent = word("agent")

    private static let headers: [(name: String, value: Secret)] = [
        ("X-Forwarded-For", Secret(forwarded.utf8))
    ]

    /// A notify call with texts of its own in `aps`, and ciphertext that nobody can open.
    private static func notify(_ cast: Cast, _ sealed: [String], _ title: String) -> Secret {
        func item(_ phone: TestPhone, _ how: String, _ sealed: String, _ more: String) -> String {
            """
            {"token_id":"\(phone.group.tokenID.text)",\(how),"payload":{"push_key_id":77,\
            "encrypted_data":"\(sealed)"\(more)}}
            """
        }
        let apple = item(
            cast.apple, "\"http_headers\":{\"apns_priority\":10,\"apns_push_type\":\"alert\"}", sealed[0],
            ",\"aps\":{\"alert\":{\"title\":\"\(title)\"},\"mutable-content\":1}")
        let google = item(cast.google, "\"fcm_priority\":\"high\"", sealed[1], "")
        return Secret(
            "{\"realm_uuid\":\"\(cast.server.realm.uuid)\",\"push_requests\":[\(apple),\(google)]}".utf8)
    }

    private static func call(_ cast: Cast, _ body: Secret) -> ZulipCall? {
        var random = SystemRandomNumberGenerator()
        // The library's own call, for its head; the body is ours.
        let made = try? cast.server.origin.notify(
            TestPhone.notification(.test(time: 1), cast.apple.account), to: [cast.apple.target],
            realm: cast.server.realm.uuid, using: &random)
        return made?.first.map { $0.with(body: body) }
    }

    /// Everything that the relay has written or says to strangers.
    private static func said(_ relay: RunningRelay) async throws -> [(place: String, bytes: Data)] {
        var said: [(String, Data)] = [("log", Data(relay.stage.log.all.joined().utf8))]
        for page in ["/metrics", "/status", "/", "/health/ready"] {
            said.append((page, Data(try await relay.admin(page).body)))
        }
        let stranger = TestServer("stranger.example.org")
        for call in [stranger.origin.analyticsStatus(), stranger.origin.signUp(hostname: "?", mail: "?")] {
            said.append(("a stranger's answer", Data(try await relay.ask(call).body)))
        }
        return said + files(relay.stage)
    }

    /// Every file of the state directory but those of the simulators' own credentials.
    private static func files(_ stage: RelayStage) -> [(place: String, bytes: Data)] {
        let names = FileManager.default.enumerator(atPath: stage.state)?.compactMap { $0 as? String } ?? []
        return names.compactMap { name in
            FileManager.default.contents(atPath: "\(stage.state)/\(name)").map { (name, $0) }
        }
    }

    @Test("No canary of any request is in log, metrics, pages, answers of others or files of the store")
    func operation() async throws {
        try await RelayStage.with { stage in
            // What is accepted now stays owed, in the outbox.
            stage.apns.turn { $0.shutdownUntil = .distantFuture }
            stage.fcm.turn { $0.unavailableShare = 1 }
            try await stage.run { relay in
                var cast = try Cast(relay)
                let server = cast.server
                let sealed = (0..<2).map { _ in
                    Base64.text((0..<90).map { _ in UInt8.random(in: .min ... .max) })
                }
                let title = Self.word("title")
                cast.canaries += sealed.map { Canary("ciphertext", $0) } + [Canary("title", title)]
                for text in sealed {
                    cast.canaries.append(Canary("ciphertext as bytes", try Base64.decode(text)))
                }
                cast.canaries += [Canary("agent", Self.agent), Canary("address", Self.forwarded)]
                let calls = [
                    server.origin.signUp(hostname: server.host, mail: server.mail),
                    server.origin.analytics(realms: [server.realm]),
                    server.origin.register(cast.apple.group, realm: server.realm.uuid),
                    server.origin.register(cast.google.group, realm: server.realm.uuid),
                    try #require(Self.call(cast, Self.notify(cast, sealed, title)))
                ]
                for call in calls {
                    #expect(try await relay.ask(call, headers: Self.headers).status == 200)
                    // Broken in the middle, and with a wrong key.
                    let half = call.with(body: call.body.reveal { Secret($0.prefix($0.count / 2)) })
                    #expect((400..<500).contains(try await relay.ask(half, headers: Self.headers).status))
                }
                #expect(try await relay.owed() == 2)
                let run = RunFile(
                    urls: relay.urls, ca: nil, publicKeys: relay.relay.publicKeys, apps: [:])
                try run.write(state: stage.state)
                let said = try await Self.said(relay)
                #expect(
                    said.contains { $0.place.hasSuffix("-wal") } && said.contains { $0.place == "run.json" })
                // The search can find: what is public is there.
                let known = Canary("public key", relay.bouncerKey)
                #expect(said.contains { $0.place == "run.json" && known.isIn($0.bytes) })
                for (place, bytes) in said {
                    for canary in cast.canaries where canary.isIn(bytes) {
                        Issue.record("\(canary.name) is in \(place)")
                    }
                }
            }
        }
    }

    @Test("What was settled and what has expired is in no file any more, whatever key one holds")
    func forgetting() async throws {
        try await RelayStage.with { stage in
            stage.apns.turn { $0.shutdownUntil = .distantFuture }
            var phone: TestPhone?
            var server: TestServer?
            try await stage.run { relay in
                let joined = try await relay.server()
                let made = try await relay.phone(.apns, of: joined)
                _ = try await joined.notify(TestPhone.message(1, "settled"), [made], relay)
                #expect(try await relay.owed() == 1)
                (server, phone) = (joined, made)
            }
            let (owed, device) = try await Self.sealedRows(stage)
            let before = Self.files(stage)
            for row in owed + [device] {
                #expect(before.contains { $0.bytes.range(of: Data(row)) != nil })
            }
            stage.apns.turn { $0.shutdownUntil = nil }
            let (joined, made) = (try #require(server), try #require(phone))
            let stream = stage.apns.subscribe(token: made.token)
            try await stage.run { relay in
                var arrivals = stream.makeAsyncIterator()
                let delivery = try #require(await arrivals.next())
                #expect(try made.open(delivery).body == TestPhone.message(1, "settled"))
                try await relay.drained()
                stage.apns.unregister(made.token, since: World.live.now())
                let dead = try await joined.notify(.test(time: 1), [made], relay).dead
                #expect(dead == [made.group.tokenID.text])
                try await relay.drained()
            }
            let after = Self.files(stage)
            #expect(after.contains { $0.place.hasSuffix(".sqlite") })
            for (index, row) in (owed + [device]).enumerated() {
                for (place, bytes) in after where Self.shares(bytes, with: row) {
                    Issue.record("row \(index) is still in \(place)")
                }
            }
        }
    }

    /// Whether any 24 bytes in a row of what was forgotten are left: a page that was cut counts too.
    private static func shares(_ bytes: Data, with row: [UInt8]) -> Bool {
        stride(from: 0, to: max(1, row.count - 24), by: 8).contains {
            bytes.range(of: Data(row[$0..<min($0 + 24, row.count)])) != nil
        }
    }

    /// The sealed columns as they stand in the file: those of the outbox, and the device's record.
    private static func sealedRows(_ stage: RelayStage) async throws -> ([[UInt8]], [UInt8]) {
        guard case .sqlite(let path) = try stage.configuration().store.engine else {
            throw FileFault.missing
        }
        let owner = OwnerID(Digest16(high: 1, low: 2))
        let store = try SQLiteStore(path: path, owner: owner, world: .live)
        _ = try await store.takeOver(limit: 10)
        let lanes = try await store.load().lanes.keys
        var owed: [[UInt8]] = []
        for lane in lanes {
            owed += try await store.claim(lane, due: .distantFuture, limit: 10).map(\.sealed)
        }
        let devices = try await store.page(
            .space("zulip-main/device"), after: 0, limit: 10, now: World.live.now())
        try store.close()
        #expect(owed.count == 1)
        return (owed, try #require(devices.first).body)
    }
}

extension ZulipCall {
    /// The same head over another body.
    func with(body: Secret) -> ZulipCall {
        ZulipCall(method: method, path: path, headers: headers, body: body)
    }
}
