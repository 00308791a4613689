import PushModel
import SessionPush
import WebClient
import WireFormats

/// A phone of Session that the command line plays, and what it keeps between two commands: a file of its own,
/// because it holds the account's key and the one that opens pushes.
struct PlayedPhone {
    /// A file of this kind has some 4 KiB.
    static let limitBytes = 64 << 10

    /// The push server's URL, without a slash at its end.
    var server: String
    /// The server's public key in hexadecimal; `nil`: it is spoken to in the clear.
    var onionKey: String?
    var service: SessionService
    /// As a push service would have given it.
    var token: Secret
    /// Of the account's key.
    let seed: Secret
    /// What the library keeps.
    private var kept: Secret

    /// An account and keys that are made anew.
    init(_ service: SessionService, server: String, onionKey: String?, token: Secret?, _ world: World) {
        (self.server, self.onionKey, self.service) = (server, onionKey, service)
        self.token = token ?? PlayedFile.inventToken(isApple: service.isApple, world)
        seed = Secret(world.randomBytes(32))
        var random = SystemRandomNumberGenerator()
        kept = SessionDevice(using: &random).encoded()
    }

    // MARK: The phone

    var account: WatchedAccount {
        get throws(SessionError) { try WatchedAccount(try SessionAccountKey(seed: seed)) }
    }

    /// The phone as the library has it.
    func device() throws(SessionError) -> SessionDevice {
        var device = try SessionDevice(keeping: kept)
        device.use(try SessionDeviceToken(service, token))
        try device.watch(try account)
        return device
    }

    mutating func keep(_ device: SessionDevice) { kept = device.encoded() }

    // MARK: The file

    /// - Throws: `CommandFailure` that names the file.
    init(file: String) throws(CommandFailure) {
        self = try PlayedFile.read(file, limitBytes: Self.limitBytes, "phone") { PlayedPhone($0) }
    }

    private init?(_ members: [String: Secret]) {
        func text(_ name: String) -> String? {
            members[name].map { $0.reveal { String(decoding: $0, as: UTF8.self) } }
        }
        guard let server = text("server"), let service = text("service").flatMap(SessionService.init),
            let token = members["token"], let seed = members["seed"].flatMap(Self.decoded),
            let kept = members["kept"]
        else { return nil }
        (self.server, onionKey, self.service) = (server, text("onion_key"), service)
        (self.token, self.seed, self.kept) = (token, seed, kept)
    }

    private static func decoded(_ text: Secret) -> Secret? {
        text.reveal { text in
            guard let count = Base64.decodedCount(text) else { return nil }
            // What is no base64 is no token.
            return try? Secret(count: count) { (room) throws(FormatError) in
                try Base64.decode(text, into: room)
            }
        }
    }

    /// Writes the file, which its owner alone may read.
    ///
    /// - Throws: `CommandFailure` that names the file.
    func write(_ file: String) throws(CommandFailure) {
        var json = JSONWriter(reserving: Self.limitBytes)
        json.beginObject()
        for (name, text) in [("server", server), ("onion_key", onionKey), ("service", service.rawValue)] {
            guard let text else { continue }
            json.key(name)
            json.string(text)
        }
        let seed = Secret(seed.reveal { Base64.encode($0) })
        for (name, secret) in [("token", token), ("seed", seed), ("kept", kept)] {
            json.key(name)
            secret.reveal { json.string(utf8: $0) }
        }
        json.endObject()
        try replaceFile(file, json.takeSecret())
    }
}

// MARK: - The network

/// Brings a phone's calls to its push server, each over a connection of its own.
struct SessionWire {
    private let url: ServerURL
    private let wire: LocalCall
    private let server: SessionServer?
    private let cipher: OnionCipher

    static let keySentence = "--onion-key: 64 hexadecimal digits, as sealbell keys new session prints them."

    static func isKey(_ text: String) -> Bool {
        text.utf8.count == 64 && text.utf8.allSatisfy { Hex.value(ofDigit: $0) != nil }
    }

    /// - Parameter authority: PEM to trust instead of the system's.
    /// - Throws: `CommandFailure` for a URL or a key that is none.
    init(
        _ phone: PlayedPhone, _ cipher: OnionCipher, authority: [UInt8]?, _ shell: Shell
    ) throws(CommandFailure) {
        guard let url = ServerURL(phone.server),
            let wire = LocalCall(url: url.base, authority: authority, deadline: shell.patience)
        else { throw CommandFailure(.usage, "--server: A URL such as https://push.acme.example.") }
        (self.url, self.wire, self.cipher) = (url, wire, cipher)
        guard let text = phone.onionKey else {
            server = nil
            return
        }
        // The sentence below is for whichever is wrong.
        guard let key = try? Hex.decode(Array(text.utf8)),
            // As above.
            let server = try? SessionServer(host: wire.host, key: Secret(key))
        else {
            throw CommandFailure(.usage, Self.keySentence)
        }
        self.server = server
    }

    /// - Returns: the server's answer; `.none` where none came.
    /// - Throws: `CommandFailure` where something came that is no answer to what was sealed.
    func answer(_ call: SessionCall) async throws(CommandFailure) -> SessionAnswer {
        guard let server else { return await ask(call.endpoint.rawValue, call.body, "application/json") }
        var random = SystemRandomNumberGenerator()
        let request: OnionRequest
        do throws(SessionError) { request = try server.request(call, cipher, using: &random) } catch {
            // Of the right length, and such that nothing can be sealed to it.
            throw CommandFailure(.usage, Self.keySentence)
        }
        let answer = await ask(request.path, request.body, "application/octet-stream")
        guard let status = answer.status else { return .none }
        do throws(SessionError) { return try request.answer(status: status, body: answer.body) } catch {
            throw Self.failure(status)
        }
    }

    /// Whoever gave that status, it was not the server that read the request.
    private static func failure(_ status: Int) -> CommandFailure {
        switch status {
        case 200:
            CommandFailure(
                .failed,
                "What answers is not the relay of that --onion-key: look at --server and at its proxy.")
        case 400:
            CommandFailure(
                .failed,
                "The relay cannot read the request (HTTP 400): its onion key is another than --onion-key. "
                    + "sealbell keys new session printed it, and run.json in its state directory has it.")
        case 429, 500...599:
            CommandFailure(.unavailable, "The relay has no answer at present (HTTP \(status)); try it later.")
        default:
            CommandFailure(
                .failed,
                "What answers is no push server (HTTP \(status)): look at --server and at its proxy.")
        }
    }

    private func ask(_ path: String, _ body: Secret, _ type: String) async -> SessionAnswer {
        do throws(LocalCall.Fault) {
            let answer = try await wire.ask(
                "POST", url.path + path, headers: [(name: "Content-Type", value: Secret(type.utf8))],
                body: body)
            return SessionAnswer(status: answer.status, body: Secret(answer.body))
        } catch {
            return .none
        }
    }
}
