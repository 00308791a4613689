import EdwardsKeys
import NIOCore
import Primitives
import PushModel
import SessionPush
import Simulators
import Synchronization
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

extension RelayStage {
    /// One Session instance, `main`, with an app for both push services.
    ///
    /// - Parameter more: further keys of the instance, each with a comma and a blank before it.
    static func session(_ more: String = "") -> String {
        oneApp(
            serving: "[main], trusted_proxies: [127.0.0.1]", bundle: "org.acme.session",
            "  main: { protocol: session, apps: [acme], onion_key: onion.key\(more) }\n")
    }
}

/// A phone with one account.
final class SessionPhone: Sendable {
    let key: SessionAccountKey
    let service: SessionService
    /// As the push service knows it.
    let token: String
    let watched: WatchedAccount
    private let device: Mutex<SessionDevice>

    /// - Parameter key: of another phone's account; `nil`: a new user's.
    init(
        _ service: SessionService, key: SessionAccountKey? = nil, namespaces: [Int16]? = nil,
        content: WatchedAccount.Content = .included
    ) throws {
        let made = try key ?? SessionAccountKey(seed: Secret(World.live.randomBytes(32)))
        let hex = Hex.encode(World.live.randomBytes(32))
        let text = service == .firebase ? "c\(hex.prefix(20)):APA91b\(hex)\(hex)" : hex
        var device = try SessionDevice(SessionServer(host: "127.0.0.1", key: nil))
        let isTest = service == .apnsSandbox
        try device.use(
            token: service == .firebase ? .fcm(text) : .apns(hex: text, isTest ? .development : .production))
        let watched = try WatchedAccount(made, namespaces: namespaces, content: content)
        try device.watch(watched)
        (self.key, self.service, token, self.watched) = (made, service, text, watched)
        self.device = Mutex(device)
    }

    var account: AccountID { key.account }

    /// Subscribes, or subscribes again.
    ///
    /// - Parameter cipher: of onion requests without nodes; `nil`: it is said in the clear.
    func subscribe(
        at relay: RunningRelay, by cipher: OnionCipher? = nil, now: UnixTime = World.live.now()
    ) async throws -> [SessionVerdict] {
        let key = try cipher.map { _ in
            try RelayKey(text: try #require(relay.relay.publicKeys["main"]?.first))
        }
        // The same phone, built for the way that is asked for.
        var device = SessionDevice(
            try SessionServer(host: "127.0.0.1", key: key), self.device.withLock(\.routine))
        if let cipher { device.cipher = cipher }
        let base = ServerURL(try #require(relay.urls["public"]))
        let wire = KitWire(DirectWeb(base: base), patience: .seconds(600))
        var (verdicts, random) = ([SessionVerdict](), SystemRandomNumberGenerator())
        for call in device.due(at: now) {
            let answer = await wire.answer(call)
            verdicts += device.take(answer, to: call, at: now, using: &random).verdicts
        }
        self.device.withLock { [device] in $0 = device }
        return verdicts
    }

    /// The account leaves the phone.
    func leave(
        at relay: RunningRelay, by cipher: OnionCipher? = nil, now: UnixTime = World.live.now()
    ) async throws -> [SessionVerdict] {
        try device.withLock { try $0.leave(account, at: now) }
        return try await subscribe(at: relay, by: cipher, now: now)
    }

    /// The bodies that it would send now.
    func bodies(now: UnixTime = World.live.now()) throws -> [SessionCall] {
        var routine = device.withLock(\.routine)
        return try routine.renewal(due: now)
    }

    /// What a delivery says to this phone.
    func open(_ delivery: Delivery) throws -> Opened<SessionMessage> {
        try device.withLock { $0 }.open(Delivered(json: Secret(delivery.body)), at: World.live.now())
    }

    /// The message in a delivery, which must have it.
    func message(_ delivery: Delivery) throws -> (hash: String, text: String) {
        let message = try #require(try open(delivery).content)
        return (message.hash, message.data?.reveal { String(decoding: $0, as: UTF8.self) } ?? "")
    }
}

extension RunningRelay {
    private var onionKey: Secret {
        get throws {
            let text = try #require(relay.publicKeys["main"]?.first)
            return Secret(try Hex.decode(Array(text.utf8)))
        }
    }

    /// Posts a body to a path of the public door.
    func session(
        _ path: String, _ body: Secret, headers: [(name: String, value: Secret)] = [],
        method: String = "POST"
    ) async throws -> LocalCall.Answer {
        try await door().ask(method, path, headers: headers, body: body)
    }

    /// Sends anything inside an onion request.
    ///
    /// - Parameter plain: what is to be read inside.
    /// - Returns: what the reply says inside: a bencoded list.
    func onion(_ plain: String, _ cipher: OnionCipher = .xchacha20) async throws -> String {
        let pair = X25519KeyPair.generate(.live)
        let key = try #require(
            try onionKey.reveal { cipher.key(pair, with: $0, isClient: true) } as Secret?)
        let nonce = World.live.randomBytes(cipher.nonceBytes)
        let sealed = Array(plain.utf8).withUnsafeBytes { cipher.seal($0, key: key, nonce: nonce) }
        let routing = #"{"ephemeral_key":"\#(Hex.encode(pair.publicKey))","enc_type":"\#(cipher.rawValue)"}"#
        var body = withUnsafeBytes(of: UInt32(sealed.count).littleEndian) { Array($0) }
        sealed.reveal { body += $0 }
        body += routing.utf8
        let answer = try await session("/oxen/v4/lsrpc", Secret(body))
        #expect(answer.status == 200)
        let opened = try #require(answer.body.withUnsafeBytes { cipher.open($0, key: key) })
        return opened.reveal { String(decoding: $0, as: UTF8.self) }
    }
}
