import Crypto
import Foundation
import PushModel
import WireFormats

/// The phone: it has a key that its origin knows too, and opens what arrives.
struct ToyDevice: Sendable {
    /// The relay knows it by that, the push service by the token.
    let id: String
    let token: String
    let key = SymmetricKey(size: .bits256)

    init(_ world: World) {
        id = Hex.encode(world.randomBytes(8))
        token = Hex.encode(world.randomBytes(32))
    }

    /// - Parameter body: as the push service delivered it.
    func open(_ body: [UInt8]) throws -> String? {
        guard let box = try JSONValue.parse(body)["box"]?.string, let bytes = Data(base64Encoded: box) else {
            return nil
        }
        return try open(bytes)
    }

    /// - Parameter box: as a push service without bodies in JSON delivered it.
    func unseal(_ box: String) throws -> String? { try Data(base64Encoded: box).map(open) }

    private func open(_ bytes: Data) throws -> String {
        String(decoding: try ChaChaPoly.open(.init(combined: bytes), using: key), as: UTF8.self)
    }
}

/// The origin: it seals, and says to the relay for whom.
enum ToyOrigin {
    static func seal(_ text: String, for device: ToyDevice) throws -> String {
        try ChaChaPoly.seal(Array(text.utf8), using: device.key).combined.base64EncodedString()
    }
}

struct ToyError: DeferringError {
    enum Code: String, Sendable, CaseIterable { case malformed, unknownDevice, overloaded, rateLimited }

    let code: Code
    var codeText: String { "toy.\(code.rawValue)" }
    var sentence: String { "The toy says \(code.rawValue)." }
    var isOverloaded: Bool { code == .overloaded }

    init(_ code: Code) { self.code = code }
    static func overloaded(retryAfter: Duration?) -> ToyError { ToyError(.overloaded) }
    static func rateLimited(retryAfter: Duration) -> ToyError { ToyError(.rateLimited) }
}

/// Where a device is reached, at one push service or another.
struct ToyPhone: Sendable {
    let isLoft: Bool
    let address: Secret

    init(isLoft: Bool = false, _ address: Secret) { (self.isLoft, self.address) = (isLoft, address) }

    /// As a record's body holds it.
    init(_ body: Secret) {
        let isLoft = body.reveal { $0.first == UInt8(ascii: "+") }
        self.init(isLoft: isLoft, isLoft ? body.reveal { Secret(Array($0.dropFirst())) } : body)
    }

    var body: Secret { isLoft ? Secret("+".utf8 + address.reveal { Array($0) }) : address }
}

/// What a peer asks of the relay.
enum ToyCall: Sendable {
    case register(id: String, ToyPhone)
    case knock(id: String, box: String)

    /// `id=…&token=…` or `id=…&loft=…` to register, or `id=…&box=…`.
    init(_ words: some StringProtocol) throws(ToyError) {
        let parts = words.split(separator: "&").map { $0.split(separator: "=", maxSplits: 1) }
        guard parts.count == 2, parts.allSatisfy({ $0.count == 2 }), parts[0][0] == "id" else {
            throw ToyError(.malformed)
        }
        let (id, value) = (String(parts[0][1]), String(parts[1][1]))
        switch parts[1][0] {
        case "token": self = .register(id: id, ToyPhone(Secret(value.utf8)))
        case "loft": self = .register(id: id, ToyPhone(isLoft: true, Secret(value.utf8)))
        case "box": self = .knock(id: id, box: value)
        default: throw ToyError(.malformed)
        }
    }
}

/// The relay's role: it keeps who has registered, and owes one push for a knock.
struct ToyRelay: AnsweringRole {
    typealias Reply = Int

    let instance: ConfiguredName
    let bundle: String
    let title: String
    let registry: any Registry
    let world: World

    static func override(_ answer: Answer) -> Outcome? { nil }
    static func isAskedOnce(_ inbound: ToyCall) -> Bool { false }
    func toll(of inbound: ToyCall, from client: ClientKey) async throws(ToyError) -> Toll? { nil }

    private func key(of id: String) -> RecordKey {
        RecordKey(Space(instance, "device"), Secret(id.utf8))
    }
    func key(ofAddress address: Secret) -> RecordKey { RecordKey(Space(instance, "address"), address) }

    /// - Returns: how many pushes are owed.
    func receive(_ inbound: ToyCall) async throws(ToyError) -> Verdict<Int, ToyError> {
        let now = world.now()
        switch inbound {
        case .register(let id, let phone):
            let record = Record(
                key: key(of: id), address: key(ofAddress: phone.address), touchedAt: now, body: phone.body)
            return Verdict(changes: [.put(record, if: .any)], reply: .now(0))
        case .knock(let id, let box):
            let found: [Record?]
            do throws(StoreError) { found = try await registry.find([key(of: id)]) } catch {
                throw ToyError(.overloaded)
            }
            guard let record = found[0], record.state == .live else { throw ToyError(.unknownDevice) }
            let push = Push(
                message: message(to: ToyPhone(record.body), box), pushClass: .normal,
                origin: Secret("toy".utf8), record: record.key, touchedAt: record.touchedAt,
                custodyEnds: now + .seconds(600), repeatIdentity: nil)
            return Verdict(pushes: [push], reply: .now(1))
        }
    }

    private func message(to phone: ToyPhone, _ box: String) -> ProviderMessage {
        guard !phone.isLoft else {
            return ProviderMessage(PigeonMessage(loft: phone.address, note: Secret(box.utf8)))
        }
        var json = JSONWriter()
        json.beginObject()
        json.beginObject("aps")
        json.member("alert", title)
        json.endObject()
        json.member("box", box)
        json.endObject()
        return .apns(
            APNsMessage(
                token: phone.address, bundle: bundle, pushType: .alert, priority: 10,
                payload: Secret(json.bytes)))
    }
}
