import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing
import WireFormats

/// Runs the cases of `status.json` that are an end's: lists of allowed keys, what a sender must accept and
/// refuse, and contact codes in both wrappings.
struct StatusEndVectors: Sendable {
    let set: VectorSet
    private let json: JSONValue

    init(_ file: VectorFile) throws {
        json = file.json
        let list = file.json["allowed_key_list"]
        let code = file.json["contact_code"]
        let published = file.json["published"]
        set = VectorSet(
            "status/" + file.set,
            VectorCase.each(of: list?["opens"], "allowed_key_list")
                + VectorCase.each(of: file.json["client_query_info"], "client_query_info")
                + ["bare", "wrapped", "written"].map {
                    VectorCase("contact_code", part: $0, name: $0, row: code ?? .null)
                }
                + VectorCase.each(
                    of: published?["fleet_push_servers"]?["keys"], "published (ends)", part: "keys")
                + VectorCase.each(of: published?["partitions"], "published (ends)", part: "partitions"))
    }

    func holds(_ vector: VectorCase) throws -> Bool {
        switch (vector.section, vector.part) {
        case ("allowed_key_list", _): try opens(vector.row)
        case ("client_query_info", _): try judges(vector.row)
        case ("contact_code", "bare"): try reads(vector.row, "wrapped", isWrapped: false)
        case ("contact_code", "wrapped"): try reads(vector.row, "protocol_message", isWrapped: true)
        case ("contact_code", _): try writes(vector.row)
        case (_, "keys"): try isServer(vector.row)
        case (_, "partitions"): try follows(vector.row)
        default: false
        }
    }

    private func key(_ name: String?) throws -> Secp256k1KeyPair {
        let row = try #require(json["keys"]?.array?.first { $0["name"]?.string == name })
        return try Secp256k1KeyPair(secret: try bytes(row["private"]))
    }

    private func bytes(_ value: JSONValue?) throws -> Secret {
        let digits = try #require(value?.string)
        return try #require(Secret(digits.utf8).fromHex)
    }

    private func opens(_ row: JSONValue) throws -> Bool {
        let section = try #require(json["allowed_key_list"])
        let owner = try key(section["owner"]?.string)
        let reader = try key(row["reader"]?.string)
        let shared = reader.sharedX(with: owner.point)
        let entries = try #require(section["list"]?.array).map { try bytes($0) }
        // Those of others do not open.
        let opened = entries.map { try? StatusBox.open($0, key: shared) }
        guard let index = row["index"]?.int64 else { return opened.allSatisfy { $0 == nil } }
        let token = Secret(try #require(row["token"]?.string).utf8)
        return opened.indices.allSatisfy { at in
            at == Int(index) ? opened[at].map { $0 == token } == true : opened[at] == nil
        }
    }

    private func judges(_ row: JSONValue) throws -> Bool {
        let info = try PushNotificationQueryInfo(reading: try bytes(row["protobuf"]))
        let isCode = row["name"]?.string == "contact code form"
        let found = Coordinates.judge(
            info, reader: try key(row["reader"]?.string), target: try key(row["target"]?.string).point,
            server: isCode ? nil : try key(row["server"]?.string).point)
        guard case .token(let token) = found else { return row["expect_token"]?.string == nil }
        guard let expected = row["expect_token"]?.string else { return false }
        return token.token == Secret(expected.utf8) && token.version == info.version
    }

    private func reads(_ row: JSONValue, _ member: String, isWrapped: Bool) throws -> Bool {
        let code = try #require(EndMessages.contactCode(try bytes(row[member])))
        let id = Secret(try #require(row["fields"]?["installation_id"]?.string).utf8)
        let signer = try key(row["signer"]?.string).point
        guard code.signer == signer else { return false }
        guard code.installationID.map({ $0 == id }) == (isWrapped ? true : nil) else { return false }
        let protobuf = try bytes(row["protobuf"])
        return code.advertisement.encoded() == protobuf
    }

    /// Signatures are deterministic, so that all bytes are.
    private func writes(_ row: JSONValue) throws -> Bool {
        let wrapped = MetadataMessage.wrap(
            try bytes(row["protobuf"]), .contactCodeAdvertisement, by: try key(row["signer"]?.string))
        let id = Secret(try #require(row["fields"]?["installation_id"]?.string).utf8)
        let message = Wrapping.wrap(wrapped, installationID: id)
        let expected = (wrapped: try bytes(row["wrapped"]), message: try bytes(row["protocol_message"]))
        return wrapped == expected.wrapped && message == expected.message
    }

    /// The keys of deployed servers, to which the list leaves off the 04.
    private func isServer(_ row: JSONValue) throws -> Bool {
        let point = Secret([4] + (try bytes(row).reveal { Array($0) })).reveal { PublicPoint($0) }
        var device = StatusInstallation(key: try key("bob"), using: &Self.random)
        try device.use(servers: [try #require(point)])
        return device.servers.count == 1
    }

    private func follows(_ row: JSONValue) throws -> Bool {
        let key = try Secp256k1KeyPair(secret: try bytes(row["private"]))
        let device = StatusInstallation(key: key, using: &Self.random)
        let code = WakuTopic(name: Secret(try #require(row["contact_code_topic"]?.string).utf8))
        let answers = WakuTopic(name: Secret(try #require(row["partitioned_topic"]?.string).utf8))
        return device.topics == [answers.contentTopic, code.contentTopic]
    }

    private static var random: SeededRandom {
        get { SeededRandom(seed: 16) }
        set { _ = newValue }
    }
}

@Suite("Status vectors of the ends", .timeLimit(.minutes(30)))
struct EndVectorTests {
    /// `nil` when a directory was named that has no such file.
    static let main = Result { try VectorFile.load("status.json").map(StatusEndVectors.init) }

    @Test("A case of the vectors holds", arguments: try EndVectorTests.main.get()?.set.cases ?? [])
    func holds(_ vector: VectorCase) async throws {
        let runner = try #require(try Self.main.get())
        #expect(try await runner.set.run(vector) { try runner.holds($0) ? $0.rows : 0 })
    }

    @Test("Each section of the ends has cases")
    func sections() throws {
        #expect(
            try Self.main.get()?.set.lacks([
                "allowed_key_list", "client_query_info", "contact_code", "published (ends)"
            ]) ?? [] == [])
    }
}
