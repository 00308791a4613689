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
    /// What the library keeps; `nil`: a new phone.
    private var kept: Secret?

    /// An account and keys that are made anew.
    init(_ service: SessionService, server: String, onionKey: String?, token: Secret?, _ world: World) {
        (self.server, self.onionKey, self.service) = (server, onionKey, service)
        self.token = token ?? PlayedFile.inventToken(isApple: service.isApple, world)
        seed = Secret(world.randomBytes(32))
    }

    // MARK: The phone

    var account: WatchedAccount {
        get throws(SessionError) { try WatchedAccount(try SessionAccountKey(seed: seed)) }
    }

    /// The phone as the library has it.
    ///
    /// - Throws: `CommandFailure` where the options or the file make none.
    func device(_ server: SessionServer, _ cipher: OnionCipher) throws(CommandFailure) -> SessionDevice {
        do {
            var device = try SessionDevice(server, keeping: kept)
            device.cipher = cipher
            return device
        } catch { throw CommandFailure(.failed, error.sentence) }
    }

    /// Tells it token and account.
    ///
    /// - Throws: `CommandFailure` for a token that no push service gives out.
    func tell(_ device: inout SessionDevice) throws(CommandFailure) {
        do {
            let token: DeviceToken =
                switch service {
                case .apns: try .apns(hex: token.word)
                case .apnsSandbox: try .apns(hex: token.word, .development)
                case .firebase, .huawei: try .fcm(token.word)
                }
            try device.use(token: token)
            try device.watch(try account)
        } catch let error as DeviceError {
            throw CommandFailure(.failed, error.sentence)
        } catch { throw CommandFailure(.failed, "The account's key is none.") }
    }

    mutating func keep(_ device: SessionDevice) { kept = device.kept }

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
            let token = members["token"], let seed = members["seed"].flatMap(Self.decoded)
        else { return nil }
        (self.server, onionKey, self.service) = (server, text("onion_key"), service)
        (self.token, self.seed, kept) = (token, seed, members["kept"])
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
        for (name, secret) in [("token", token), ("seed", seed), ("kept", kept)] as [(String, Secret?)] {
            guard let secret else { continue }
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
    let server: SessionServer

    static let keySentence = "--onion-key: 64 hexadecimal digits, as sealbell keys new session prints them."

    static func isKey(_ text: String) -> Bool {
        text.utf8.count == 64 && text.utf8.allSatisfy { Hex.value(ofDigit: $0) != nil }
    }

    /// - Parameter authority: PEM to trust instead of the system's.
    /// - Throws: `CommandFailure` for a URL or a key that is none.
    init(_ phone: PlayedPhone, authority: [UInt8]?, _ shell: Shell) throws(CommandFailure) {
        guard let url = ServerURL(phone.server),
            let wire = LocalCall(url: url.base, authority: authority, deadline: shell.patience)
        else { throw CommandFailure(.usage, "--server: A URL such as https://push.acme.example.") }
        (self.url, self.wire) = (url, wire)
        do {
            let key = try phone.onionKey.map { (text) throws(DeviceError) in try RelayKey(text: text) }
            server = try SessionServer(host: wire.host, key: key)
        } catch { throw CommandFailure(.usage, Self.keySentence) }
    }

    /// Makes a call; the server's address is the one of `--server`, with its port and path.
    func answer(_ call: Call) async -> CallAnswer {
        guard let http = call.http, let path = ServerURL(http.url)?.path else { return .none }
        do throws(LocalCall.Fault) {
            let answer = try await wire.ask(
                http.method, url.path + path, headers: http.headers, body: http.body)
            return .http(status: answer.status, body: Secret(answer.body))
        } catch {
            return .none
        }
    }

    /// - Parameter answer: of an onion that the server has not answered.
    /// - Returns: `nil` where nobody did.
    static func failure(_ answer: CallAnswer) -> CommandFailure? {
        if case .http(let status, _, _) = answer { failure(status) } else { nil }
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
}
