import PushModel
import WireFormats

/// Nextcloud as trials see it: an instance, and a server with some users and their devices.
struct NextcloudLoad: LoadProtocol {
    static let instance = "nextcloud-load"

    var name: String { "nextcloud" }

    func makeInstance(_ world: World) -> StagedInstance {
        // Who may push is told by the users' own keys.
        StagedInstance(name: Self.instance, publicKey: [], keyFile: nil, isServed: true) { _ in
            ["protocol: nextcloud", "apps: [load]"]
        }
    }

    func makeOrigin(host: String, publicKey: [UInt8], bundle: String, world: World) -> any LoadOrigin {
        NextcloudLoadOrigin(host: host, world: world)
    }

    /// What names a push: the first 15 characters of its ciphertext, 90 random bits.
    static func mark(ofSubject text: String) -> String { String(text.prefix(markBytes)) }

    private static let markBytes = 15

    func mark(in body: [UInt8]) -> String? {
        Self.characters(Self.markBytes, behind: "\"subject\":\"", in: body)
    }

    /// An ended device is named in `unknown`; an entry that was not taken is counted in `failed`.
    func areAlive(_ answer: String) -> Bool {
        // What is no JSON is no answer of this protocol.
        guard let json = try? JSONValue.parse(Array(answer.utf8)) else { return false }
        return json["unknown"]?.array?.isEmpty == true && json["failed"]?.int64 == 0
    }

    func taken(_ pushes: Int) -> String { "\"failed\":0" }

    /// Nobody shows credentials that a stranger could be without, so these are the listener's alone; the rest
    /// is ``NextcloudSiege``'s.
    var attacks: [SiegeAttack] { [.quiet, .connections, .descriptors] }
}
