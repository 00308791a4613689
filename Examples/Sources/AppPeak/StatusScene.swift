import AppSupport
import Foundation
import StatusPush

/// The account of `Examples/Vectors/status.json`, with as many contacts as a device takes.
struct StatusScene {
    private let setup: StatusSetup
    private let chat: Secret
    private let push: Secret

    init() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let file = try Data(contentsOf: here.appendingPathComponent("../../Vectors/status.json"))
        guard let members = try JSONSerialization.jsonObject(with: file) as? [String: Any],
            let digits = (members["key"] as? String).map(Array.init), digits.count == 64,
            let server = members["server"] as? String, let chat = members["chat"] as? String,
            let delivered = members["delivered"]
        else { throw Failure("Examples/Vectors/status.json") }
        let key = stride(from: 0, to: 64, by: 2).compactMap { place in
            UInt8(String(digits[place...(place + 1)]), radix: 16)
        }
        setup = try StatusSetup(
            key: Secret(key), bundleID: "org.example.chat",
            installationID: members["installationID"] as? String, servers: [RelayKey(text: server)])
        self.chat = Secret(chat.utf8)
        push = Secret(try JSONSerialization.data(withJSONObject: delivered))
    }

    func fill() throws -> LeftPhone {
        var device = try StatusDevice(setup)
        var settings = StatusSettings()
        settings.contacts = try (0..<1_500).map { number in
            let secret = [UInt8](repeating: 1, count: 30) + [UInt8(number >> 8), UInt8(number & 255)]
            return try Secp256k1KeyPair(secret: Secret(secret)).point
        }
        try device.apply(settings)
        try device.use(token: .apns(bytes: [UInt8](repeating: 0xA5, count: 32)))
        guard !device.due(at: now()).isEmpty else { throw Failure("it registers") }
        return LeftPhone(kept: device.kept, push: push)
    }

    func open(_ left: LeftPhone) throws {
        var device = try StatusDevice(setup, keeping: left.kept)
        device.chats = [chat]
        guard case .show = try device.open(Delivered(json: left.push), at: now()) else {
            throw Failure("Status's push has its message in it")
        }
    }
}
