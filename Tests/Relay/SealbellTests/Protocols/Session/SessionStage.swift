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
        """
        listeners:
          public: { bind: "127.0.0.1:0", serves: [main], trusted_proxies: [127.0.0.1] }
          admin: { bind: "127.0.0.1:0" }
        log: { level: debug }
        apps:
          acme:
            apns:
              { team: A1B2C3D4E5, key_id: F6G7H8I9J0, key_file: apns.p8, bundles: [org.acme.session],
                environment: learn }
            fcm: { service_account: fcm.json }
        instances:
          main: { protocol: session, apps: [acme], onion_key: onion.key\(more) }

        """
    }
}

/// A phone with one account.
final class SessionPhone: Sendable {
    let key: SessionAccountKey
    let service: SessionService
    /// As the push service knows it.
    let token: String
    let watched: WatchedAccount
    private let device: Mutex<SessionRoutine>

    /// - Parameter key: of another phone's account; `nil`: a new user's.
    init(
        _ service: SessionService, key: SessionAccountKey? = nil, namespaces: [Int16]? = nil,
        content: WatchedAccount.Content = .included
    ) throws {
        let made = try key ?? SessionAccountKey(seed: Secret(World.live.randomBytes(32)))
        let hex = Hex.encode(World.live.randomBytes(32))
        let text = service == .firebase ? "c\(hex.prefix(20)):APA91b\(hex)\(hex)" : hex
        var random = SystemRandomNumberGenerator()
        var device = SessionRoutine(using: &random)
        device.use(try SessionDeviceToken(service, Secret(text.utf8)))
        let watched = try WatchedAccount(made, namespaces: namespaces, content: content)
        try device.watch(watched)
        (self.key, self.service, token, self.watched) = (made, service, text, watched)
        self.device = Mutex(device)
    }

    var account: AccountID { key.account }

    /// Subscribes, or subscribes again.
    func subscribe(
        at relay: RunningRelay, by cipher: OnionCipher? = nil, now: UnixTime = World.live.now()
    ) async throws -> [SessionVerdict] {
        let calls = try device.withLock { try $0.renewal(due: now) }
        return try await settle(calls, at: relay, by: cipher, now: now)
    }

    /// The account leaves the phone.
    func leave(
        at relay: RunningRelay, by cipher: OnionCipher? = nil, now: UnixTime = World.live.now()
    ) async throws -> [SessionVerdict] {
        let calls = try device.withLock { device in
            try device.leave(account, now: now)
            return try device.renewal(due: now)
        }
        return try await settle(calls, at: relay, by: cipher, now: now)
    }

    private func settle(
        _ calls: [SessionCall], at relay: RunningRelay, by cipher: OnionCipher?, now: UnixTime
    ) async throws -> [SessionVerdict] {
        var verdicts: [SessionVerdict] = []
        for call in calls {
            let answer = try await relay.answer(call, by: cipher)
            var random = SystemRandomNumberGenerator()
            verdicts += device.withLock { device in
                device.settle(call.id, answer, now: now, using: &random).map(\.verdict)
            }
        }
        return verdicts
    }

    /// The bodies that it would send now.
    func bodies(now: UnixTime = World.live.now()) throws -> [SessionCall] {
        try device.withLock { try $0.renewal(due: now) }
    }

    /// What a delivery says to this phone.
    func open(_ delivery: Delivery) throws -> SessionAction {
        let push = try DeliveredPush(delivered: Secret(delivery.body))
        return try device.withLock { try $0.open(push, now: World.live.now()) }
    }

    /// The message in a delivery, which must have it.
    func message(_ delivery: Delivery) throws -> (hash: String, text: String) {
        switch try open(delivery) {
        case .show(let message), .update(let message), .fetch(let message):
            (message.hash, message.data?.reveal { String(decoding: $0, as: UTF8.self) } ?? "")
        case .ignore(let reason): throw SessionFault.ignored(reason)
        }
    }
}

enum SessionFault: Error { case ignored(SessionAction.Reason) }

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

    /// Sends a call, as it is or inside an onion request without nodes.
    func answer(_ call: SessionCall, by cipher: OnionCipher?) async throws -> SessionAnswer {
        guard let cipher else {
            let answer = try await session(call.endpoint.rawValue, call.body)
            return SessionAnswer(status: answer.status, body: Secret(answer.body))
        }
        let server = try OnionServer(host: "127.0.0.1", key: onionKey)
        var random = SystemRandomNumberGenerator()
        let request = try server.request(call, through: [], cipher, using: &random)
        let answer = try await session(request.path, request.body)
        return try request.answer(status: answer.status, body: Secret(answer.body))
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
