import Primitives
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

/// A phone that registers with an account id, as the specification and servers of 11.x have it, written from
/// the sheet alone: no code of our device or origin takes part.
private struct AccountPhone {
    let kind: TokenKind
    let token: String
    let accountID: Int64
    /// Its own, to which content is sealed.
    let pair = X25519KeyPair.generate(.live)

    init(_ kind: TokenKind, _ accountID: Int64) {
        self.kind = kind
        token = TestPhone.token(kind)
        self.accountID = accountID
    }

    /// The form of `push/e2ee/register`. The blob is as the document writes it: a date, and no app.
    func form(realm: String, bouncerKey: String, age: Int64 = 0) throws -> [(String, String)] {
        let time = RFC3339Text.utc(World.live.now().seconds - age)
        let plain = #"{"token_kind":"\#(kind.rawValue)","token":"\#(token)","timestamp":"\#(time)"}"#
        let sealed = try SealedBox.seal(
            Secret(plain.utf8), to: try Base64.decode(bouncerKey), ephemeral: .generate(.live))
        return [
            ("realm_uuid", realm), ("push_account_id", String(accountID)),
            ("encrypted_push_registration", Base64.text(sealed)), ("bouncer_public_key", bouncerKey)
        ]
    }

    func seal(_ text: String) throws -> String {
        Base64.text(try SealedBox.seal(Secret(text.utf8), to: pair.publicKey, ephemeral: .generate(.live)))
    }

    /// What a push service brought, opened; the account id is a number at Apple's and a text at Google's.
    func open(_ delivery: Delivery) throws -> String? {
        let body = try JSONValue.parse(delivery.body)
        let fields = kind == .apns ? body : try #require(body["message"]?["data"])
        let id = kind == .apns ? fields["push_account_id"]?.int64.map(String.init) : nil
        try #require((id ?? fields["push_account_id"]?.string) == String(accountID))
        let content = try Base64.decode(try #require(fields["encrypted_content"]?.string))
        return try SealedBox.open(content, with: pair).reveal { String(decoding: $0, as: UTF8.self) }
    }
}

/// Writes what RFC 3339 asks for, by counting days.
private enum RFC3339Text {
    static func utc(_ seconds: Int64) -> String {
        var days = seconds / 86_400
        var year: Int64 = 1970
        func isLeap(_ year: Int64) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }
        while days >= (isLeap(year) ? 366 : 365) {
            days -= isLeap(year) ? 366 : 365
            year += 1
        }
        let lengths = [31, isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as [Int64]
        var month = 0
        while days >= lengths[month] {
            days -= lengths[month]
            month += 1
        }
        func two(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let time = seconds % 86_400
        return "\(year)-\(two(Int64(month) + 1))-\(two(days + 1))T\(two(time / 3_600)):"
            + "\(two(time / 60 % 60)):\(two(time % 60))Z"
    }
}

/// The account form over real sockets (docs/conformance/zulip.md).
@Suite("Zulip registrations with account ids, end to end", .timeLimit(.minutes(30)))
struct AccountFormTests {
    private func call(
        _ relay: RunningRelay, _ server: TestServer, _ path: ZulipPath, _ fields: [(String, String)]
    ) async throws -> TestAnswer {
        let form = Form(fields.map { ($0.0, Array($0.1.utf8)) })
        return try await ask(relay, server, "POST", path.rawValue, Secret(form.encoded()))
    }

    private func ask(
        _ relay: RunningRelay, _ server: TestServer, _ method: String, _ path: String, _ body: Secret?
    ) async throws -> TestAnswer {
        let headers = server.origin.analyticsStatus().headers.filter { $0.name == "Authorization" }
        let answer = try await relay.door().ask(method, path, headers: headers, body: body)
        let json = (try? JSONValue.parse(answer.body)) ?? .null  // Not every refusal is JSON.
        return TestAnswer(status: answer.status, body: answer.body, json: json, headers: answer.headers)
    }

    private func notify(
        _ relay: RunningRelay, _ server: TestServer, _ items: [(id: Int64, content: String)],
        priority: String = "high"
    ) async throws -> TestAnswer {
        let list = items.map {
            #"{"device_id":\#($0.id),"encrypted_content":"\#($0.content)","priority":"\#(priority)"}"#
        }
        let body =
            #"{"realm_uuid":"\#(server.realm.uuid)","push_requests":[\#(list.joined(separator: ","))]}"#
        return try await ask(
            relay, server, "POST", ZulipPath.notify.rawValue, Secret(body.utf8))
    }

    @Test("A phone of each kind registers, is written to, is refused by its service, and comes back")
    func wholeWay() async throws {
        try await RelayStage.with { stage in
            try await stage.run { relay in
                let server = try await relay.server()
                let phones = [AccountPhone(.apns, 1 << 53 + 1), AccountPhone(.fcm, .min)]
                var ids: [Int64] = []
                for phone in phones {
                    let form = try phone.form(realm: server.realm.uuid, bouncerKey: relay.bouncerKey)
                    let answer = try await call(relay, server, .register, form)
                    #expect(answer.status == 200)
                    ids.append(try #require(answer.json["device_id"]?.int64))
                }
                let arrivals = [
                    stage.apns.subscribe(token: phones[0].token),
                    stage.fcm.subscribe(address: phones[1].token)
                ]
                let sent = try await notify(
                    relay, server, [(ids[0], phones[0].seal("one")), (ids[1], phones[1].seal("two"))])
                #expect(sent.status == 200 && sent.apple == 1 && sent.android == 1)
                #expect(sent.json["delete_device_ids"]?.array?.isEmpty == true)
                for ((phone, arrival), text) in zip(zip(phones, arrivals), ["one", "two"]) {
                    #expect(try phone.open(try await arrival.next("a delivery")) == text)
                }
                let none = try await ask(
                    relay, server, "GET",
                    ZulipPath.staleDevices.rawValue + "?realm_uuid=\(server.realm.uuid)", nil)
                #expect(none.status == 200 && none.json["device_ids"]?.array?.isEmpty == true)
                #expect(none.json["next_after"]?.isNull == true)
                try await relay.drained()
            }
        }
    }
}
