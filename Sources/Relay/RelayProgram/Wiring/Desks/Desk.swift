import AdminIngress
import HTTPIngress
import PushModel
import WireFormats

/// Why an operator's call is not done. One sentence of ours; nothing of the call is repeated.
enum DeskRefusal: Error {
    case status(Int, StaticString)
    /// With words of the configuration's or the program's own lists; never with what a peer has said.
    case told(Int, String)
    case store(StoreError)

    var outbound: HTTPOutbound {
        switch self {
        case .status(let status, let sentence): .text(status, "\(sentence)")
        case .told(let status, let sentence): .text(status, sentence)
        case .store(let error): .text(503, error.sentence).retrying(after: .seconds(1))
        }
    }
}

extension AdminCall {
    /// A call whose answer is JSON, or a refusal's sentence.
    static func desk(
        _ path: String, takesBody: Bool,
        _ answer: @escaping @Sendable (HTTPInbound) async throws(DeskRefusal) -> [UInt8]
    ) -> AdminCall {
        AdminCall(path, takesBody: takesBody) { inbound in
            do throws(DeskRefusal) {
                return HTTPOutbound(200, .json, try await answer(inbound))
            } catch {
                return error.outbound
            }
        }
    }
}

extension AdminCall {
    /// `GET` of what an instance of a kind counts; `?instance=` names it where there are several.
    static func statistics<Instance: CountingInstance>(
        _ path: String, of _: Instance.Type, _ instances: DeskInstances
    ) -> AdminCall {
        .desk(path, takesBody: false) { inbound throws(DeskRefusal) in
            let instance = try instances.part(inbound.members["instance"]) { $0 as? Instance }.part
            return JSONWriter.object { json in
                json.member("instance", instance.name.text)
                json.member("uptime", instance.tally.uptime)
                instance.statistics(into: &json)
            }
        }
    }
}

/// Asks the store in an operator's call, which is refused where the store does not answer.
func stored<Found>(
    _ ask: () async throws(StoreError) -> Found
) async throws(DeskRefusal) -> Found {
    do throws(StoreError) { return try await ask() } catch { throw .store(error) }
}

extension HTTPInbound {
    /// The members of a query; of two of one name the last counts.
    var members: [String: String] {
        var members: [String: String] = [:]
        for pair in (query ?? "").split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { members[String(parts[0])] = String(parts[1]) }
        }
        return members
    }

    /// The body's JSON object. Its strings are `String`: not for a call that carries a token.
    func object() throws(DeskRefusal) -> JSONObject {
        let parsed = withBody { bytes in
            // Whatever cannot be read gets the same answer.
            try? JSONValue.parse(bytes, limitBytes: AdminCall.bodyLimitBytes, depthLimit: 4)
        }
        guard let object = parsed?.object else { throw .status(400, "The body is no JSON object.") }
        return object
    }
}

/// The instances of a configuration, as an operator's call names one.
struct DeskInstances: Sendable {
    private let instances: [any HostedInstance]

    init(_ instances: [any HostedInstance]) { self.instances = instances }

    /// Those of every instance where origins sign up.
    var controls: [any OriginControl] { instances.compactMap(\.origins) }

    /// How those that go to their peers by themselves hear them.
    func ingresses() async -> [IngressReport] {
        var reports: [IngressReport] = []
        for instance in instances {
            if let report = await instance.hearing() { reports.append(report) }
        }
        return reports
    }

    /// The keys in force, of every instance or of one; empty where there is no such instance.
    func keys(
        at instance: String?
    ) async throws(StoreError) -> [(instance: ConfiguredName, keys: [KeyInForce])] {
        var found: [(instance: ConfiguredName, keys: [KeyInForce])] = []
        for one in instances where instance == nil || one.name.text == instance {
            found.append((one.name, try await one.keysInForce()))
        }
        return found
    }

    /// Where registrations of an address would be found, over all instances.
    func indexes(ofAddress address: Secret, appID: String?) -> [RecordKey] {
        instances.flatMap { $0.indexes(ofAddress: address, appID: appID) }
    }

    static func add(_ key: RecordKey, to keys: inout [RecordKey]) {
        let isKnown = keys.contains { $0.space == key.space && $0.name == key.name }
        if !isKnown { keys.append(key) }
    }

    /// As given, and where it is hexadecimal in both cases: devices register it as their app spells it.
    static func spellings(_ address: Secret) -> [Secret] {
        address.reveal { bytes in
            guard bytes.allSatisfy({ Hex.value(ofDigit: $0) != nil }) else { return [address] }
            func folded(_ letters: ClosedRange<UInt8>) -> Secret {
                Secret(count: bytes.count) { out in
                    for index in 0..<out.count {
                        out[index] = letters.contains(bytes[index]) ? bytes[index] ^ 0x20 : bytes[index]
                    }
                }
            }
            let others = [folded(0x41...0x46), folded(0x61...0x66)]
            return [address] + others.filter { !($0 == address) }
        }
    }

    /// The registrations of an account, over all instances or at one, as its protocol names it.
    func registrations(
        ofAccount account: String, at instance: String?, in registry: some Registry, atMost most: Int
    ) async throws(StoreError) -> [Record] {
        var records: [Record] = []
        for one in instances where instance == nil || one.name.text == instance {
            let places = one.places(ofAccount: account)
            for owner in places.owners {
                records += try await registry.page(.owner(owner), after: 0, limit: most)
            }
            records += try await registry.find(places.records).compactMap(\.self)
        }
        return records
    }

    /// The rooms of registrations, of all instances or of one.
    func registrationSpaces(at instance: String?) -> [Space] {
        instances.filter { instance == nil || $0.name.text == instance }.flatMap(\.registrationSpaces)
    }

    /// The registrations that somebody at a protocol's other end would name so, over all instances or at one.
    func registrations(
        named names: [String: String], at instance: String?
    ) async throws(StoreError) -> [Record] {
        var records: [Record] = []
        for one in instances where instance == nil || one.name.text == instance {
            records += try await one.registrations(named: names)
        }
        return records
    }

    /// How many devices records of such indexes are of.
    func devices(among records: [RecordKey]) -> Int {
        records.count { record in instances.allSatisfy { $0.isDevice(record) } }
    }

    /// What is asked for of the instance that is meant; where one alone has it, it need not be named.
    func part<Part>(
        _ name: String?, _ of: (any HostedInstance) -> Part?
    ) throws(DeskRefusal) -> (name: ConfiguredName, part: Part) {
        let all = instances.compactMap { instance in of(instance).map { (name: instance.name, part: $0) } }
        guard let name else {
            guard all.count == 1, let only = all.first else {
                throw all.isEmpty
                    ? .status(404, "The configuration has no instance that knows of this.")
                    : .status(400, "There are several instances; say which one.")
            }
            return only
        }
        guard let found = all.first(where: { $0.name.text == name }) else {
            throw .status(404, "The configuration has no instance of that name.")
        }
        return found
    }

    /// The origins of the instance that is meant.
    func control(_ name: String?) throws(DeskRefusal) -> (name: ConfiguredName, part: any OriginControl) {
        try part(name) { $0.origins }
    }

    /// The origin that `id` or `host` of a body names, and where it has signed up.
    func origin(_ body: JSONObject) async throws(DeskRefusal) -> (id: UUIDText, control: any OriginControl) {
        let (_, control) = try control(body["instance"]?.string)
        if let host = body["host"]?.string {
            let holder = try await stored { () throws(StoreError) in try await control.holder(of: host) }
            guard let holder else {
                throw .status(
                    404, "No origin of this host name has signed up, or several have at ports of their own.")
            }
            return (holder, control)
        }
        guard let id = body["id"]?.string.flatMap({ UUIDText($0) }) else {
            throw .status(400, "An origin is named by the id or the host name that the list gives.")
        }
        return (id, control)
    }

    /// All origins that `host` of a body names, at whatever port; or the one of `id`. Never none.
    func origins(
        _ body: JSONObject
    ) async throws(DeskRefusal) -> (ids: [UUIDText], control: any OriginControl) {
        guard let host = body["host"]?.string else {
            let (id, control) = try await origin(body)
            return ([id], control)
        }
        let (_, control) = try control(body["instance"]?.string)
        let holders = try await stored { () throws(StoreError) in try await control.holders(ofName: host) }
        guard !holders.isEmpty else { throw .status(404, "No origin of this host name has signed up.") }
        return (holders, control)
    }
}
