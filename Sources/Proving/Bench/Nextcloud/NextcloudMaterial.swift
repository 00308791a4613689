import NextcloudPush
import PushModel
import RSAKeys
import WireFormats

/// Users of a server that exists to make load, with one device each, and a batch for them.
struct NextcloudMaterial {
    let keys: [RSAPrivateKey]
    /// What each entry's user has signed, by turns.
    let signed: [(subject: [UInt8], signature: [UInt8])]
    /// A notifications call as a deployed server writes it.
    let body: [UInt8]
    let entries: Int
    private let registrations: [[UInt8]]

    /// - Parameter users: of whom each has one device, and an equal part of the entries.
    init(users: Int, entries: Int, world: World) throws {
        let keys = try (0..<users).map { _ in try RSAPrivateKey.generate() }
        var origin = NextcloudLoadOrigin(host: "localhost", world: world, keys: keys)
        registrations = try keys.indices.map { number in
            var device = LoadDevice.make(.fcm, world)
            device.number = UInt32(number)
            return try origin.register(device).body
        }
        let devices = origin.devices
        let call = try origin.notify((0..<entries).map { devices[$0 % users] }, as: .message)
        signed = try Form.parse(call.body, fieldLimit: entries).fields.map { field in
            let entry = try JSONValue.parse(field.value)
            return (
                try Base64.decode(entry["subject"]?.string ?? ""),
                try Base64.decode(entry["signature"]?.string ?? "")
            )
        }
        (self.keys, self.entries, body) = (keys, entries, call.body)
    }

    /// A relay that knows no key yet, over a registry that has all devices.
    func relay(_ registry: HeldRecords, _ world: World) throws -> NextcloudRelay {
        guard let app = ConfiguredName("acme-talk") else { throw BenchError(.badPlan) }
        return try NextcloudRelay(
            instance: app, apps: NextcloudApps([NextcloudApp(name: app, bundle: nil, hasFCM: true)]),
            registry: registry, web: nil, world: world)
    }

    func register(at relay: NextcloudRelay, _ registry: HeldRecords) async throws {
        for body in registrations {
            let verdict = try await relay.receive(Self.inbound("/devices", body))
            _ = try await registry.apply(verdict.changes)
        }
    }

    static func inbound(_ path: String, _ body: [UInt8]) throws -> NextcloudInbound {
        try withBytes(body) { (bytes) throws(NextcloudError) in
            try NextcloudInbound.parse(method: "POST", path: path, body: bytes)
        }
    }
}
