import Primitives
import PushModel
import Simulators
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

extension DemoServer {
    /// Signs up and says which realm it has.
    func join(_ relay: RunningRelay, _ listener: String = "public") async throws {
        #expect(try await relay.ask(joining.signUp, listener).status == 200)
        let known = try await relay.ask(joining.realm, listener)
        #expect(known.json["realms"]?[realm.uuid]?["can_push"]?.bool == true)
    }

    /// Passes a phone's registration on.
    func register(
        _ phone: DemoApp, _ relay: RunningRelay, _ listener: String = "public"
    ) async throws -> TestAnswer {
        try await relay.ask(register(phone), listener)
    }

    /// Seals one notification for phones and hands it over.
    func notify(
        _ body: ZulipNotification.Body, _ phones: [DemoApp], _ relay: RunningRelay,
        _ listener: String = "public"
    ) async throws -> TestAnswer {
        let calls = try notify(phones[0].notification(body), phones)
        return try await relay.ask(try #require(calls.first), listener)
    }
}

extension DemoApp {
    init(
        _ kind: TokenKind, _ bouncerKey: String, token: String? = nil, bundle: String = "org.acme.chat"
    ) throws {
        let made = token ?? Self.token(kind)
        try self.init(
            kind == .apns ? .apns(hex: made) : .fcm(made), bouncerKey: bouncerKey, bundle: bundle,
            realmURL: "https://chat.acme.example", at: World.live.now())
    }

    static func token(_ kind: TokenKind) -> String {
        let random = Hex.encode((0..<32).map { _ in UInt8.random(in: .min ... .max) })
        return kind == .apns ? random : "cB7_\(random):APA91b\(random)"
    }

    /// Registers the token in that spelling.
    mutating func spell(_ token: String, bundle: String) throws {
        let (text, key) = (Secret(token.utf8), registration.bouncerKey)
        tokenID = TokenID(token: text)
        let plain = RegistrationPlaintext(
            kind: registration.kind, token: text, timestamp: World.live.now().seconds, appID: bundle)
        registration = SealedRegistration(
            .token(tokenID), kind: registration.kind, bouncerKey: key,
            sealed: try RegistrationBox.seal(plain, to: Base64.decode(key), ephemeral: .generate(.live)))
    }

    func open(_ delivery: Delivery) throws -> ZulipNotification {
        let opened = try open(delivery, at: World.live.now())
        return try #require(opened)
    }
}

/// An answer of the relay.
struct TestAnswer: Sendable {
    let status: Int
    let body: [UInt8]
    let json: JSONValue
    let headers: [(name: String, value: String)]

    var apple: Int64? { json["apple_successfully_sent_count"]?.int64 }
    var android: Int64? { json["android_successfully_sent_count"]?.int64 }
    var dead: [String] { json["delete_token_ids"]?.array?.compactMap(\.string) ?? [] }
    var code: String? { json["code"]?.string }
}

extension RunningRelay {
    func ask(
        _ call: HTTPCall, _ listener: String = "public", authority: String? = nil,
        headers: [(name: String, value: Secret)] = []
    ) async throws -> TestAnswer {
        let answer = try await door(listener, authority: authority).ask(
            call.method, call.url, headers: call.headers + headers,
            body: call.method == "GET" ? nil : call.body)
        // Not every refusal is JSON; `null` has no members.
        let json = (try? JSONValue.parse(answer.body)) ?? .null
        return TestAnswer(status: answer.status, body: answer.body, json: json, headers: answer.headers)
    }

    /// A server that has joined.
    func server(_ host: String = "chat.acme.example") async throws -> DemoServer {
        let server = DemoServer(host)
        try await server.join(self)
        return server
    }

    /// A server that has joined, and a phone that it has registered.
    func join(
        _ kind: TokenKind, token: String? = nil
    ) async throws -> (server: DemoServer, phone: DemoApp) {
        let server = try await server()
        return (server, try await phone(kind, of: server, token: token))
    }

    /// A phone that the server has registered.
    func phone(_ kind: TokenKind, of server: DemoServer, token: String? = nil) async throws -> DemoApp {
        let phone = try DemoApp(kind, bouncerKey, token: token)
        #expect(try await server.register(phone, self).status == 200)
        return phone
    }
}
