import PushModel
import SessionPush
import WebClient
import WireFormats

/// A phone of Session that the command line plays, and what it keeps between two commands: a file of its own,
/// because it holds the account's key and the one that opens pushes.
struct PlayedPhone: KitOwner {
    /// A file of this kind has some 4 KiB.
    static let limitBytes = 64 << 10
    static let noun = "phone"

    let file: HeldFile
    /// The push server's URL, without a slash at its end.
    var server: String
    /// The server's public key in hexadecimal; `nil`: it is spoken to in the clear.
    var onionKey: String?
    var service: SessionService
    /// As a push service would have given it.
    var token: Secret
    /// Of the account's key.
    let seed: Secret
    var kept: Secret?

    /// An account and keys that are made anew.
    init(
        _ service: SessionService, server: String, onionKey: String?, token: Secret?, _ file: HeldFile,
        _ world: World
    ) {
        (self.server, self.onionKey, self.service, self.file) = (server, onionKey, service, file)
        self.token = token ?? world.inventToken(isApple: service.isApple)
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
        var device = try orFail { () throws(DeviceError) in try SessionDevice(server, keeping: kept) }
        device.cipher = cipher
        return device
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

    // MARK: The file

    init?(_ row: KitObject, _ file: HeldFile) {
        guard let server = row.text("server"), let service: SessionService = row.word("service"),
            let token = row["token"], let seed = row["seed"].flatMap(Self.decoded)
        else { return nil }
        (self.server, onionKey, self.service, self.file) = (server, row.text("onion_key"), service, file)
        (self.token, self.seed, kept) = (token, seed, row["kept"])
    }

    var row: KitObject {
        [
            "server": server, "onion_key": onionKey, "service": service.rawValue, "token": token,
            "seed": Secret(seed.reveal { Base64.encode($0) }), "kept": kept
        ]
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
}

// MARK: - The network

/// The way to a phone's push server.
struct SessionWire {
    let wire: KitWire
    let server: SessionServer

    static let keySentence = "--onion-key: 64 hexadecimal digits, as sealbell keys new session prints them."

    static func isKey(_ text: String) -> Bool {
        text.utf8.count == 64 && text.utf8.allSatisfy { Hex.value(ofDigit: $0) != nil }
    }

    /// - Parameter ca: a PEM file of the authority to trust instead of the system's.
    /// - Throws: `CommandFailure` for a URL, a key or a file that is none.
    init(_ phone: PlayedPhone, _ ca: String?, _ shell: Shell) throws(CommandFailure) {
        // The server's address is the one of --server, with its port and path.
        let url = ServerURL(phone.server)
        wire = try KitWire(direct: ca, base: url, shell)
        guard let host = url.flatMap({ LocalCall(url: $0.base) })?.host else {
            throw CommandFailure(.usage, "--server: A URL such as https://push.acme.example.")
        }
        do {
            let key = try phone.onionKey.map { (text) throws(DeviceError) in try RelayKey(text: text) }
            server = try SessionServer(host: host, key: key)
        } catch { throw CommandFailure(.usage, Self.keySentence) }
    }

    /// - Parameter answer: of an onion that the server has not answered: whoever gave that status, it was not
    ///   the server that read the request.
    /// - Returns: `nil` where nobody did.
    static func failure(_ answer: CallAnswer) -> CommandFailure? {
        guard case .http(let status, _, _) = answer else { return nil }
        return switch status {
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

extension SessionDevice: KitTalker {}
