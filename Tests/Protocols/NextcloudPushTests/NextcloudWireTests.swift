import NextcloudPush
import PushModel
import Testing
import WireFormats

@Suite("Nextcloud on the wire", .timeLimit(.minutes(30)))
struct NextcloudWireTests {
    @Test("The paths are known, behind a prefix or none, with leading slashes doubled or not")
    func paths() {
        #expect(NextcloudPath(sent: "/devices")?.endpoint == .devices)
        #expect(NextcloudPath(sent: "/Acme-Talk/devices")?.prefix == "acme-talk")
        #expect(NextcloudPath(sent: "//acme-talk/notifications")?.prefix == "acme-talk")
        let none = [
            "", "/", "devices", "/device", "/devices/", "/a/b/devices", "/a//devices", "/a%2Fb/devices",
            "/ä/devices", "/" + String(repeating: "a", count: 65) + "/devices", "/devices/notifications/x"
        ]
        for path in none { #expect(NextcloudPath(sent: path) == nil, "\(path)") }
    }

    @Test("A User-Agent tells its products, and an iOS build that wants alerts alone")
    func agents() {
        let talk = ClientHint(userAgent: "Mozilla/5.0 (iOS) Nextcloud-Talk v20.1.0 (Strict VoIP)")
        #expect(talk.products.contains("nextcloud-talk") && !talk.isAlertOnly)
        #expect(ClientHint(userAgent: "Mozilla/5.0 (iOS) Nextcloud-Talk v8").isAlertOnly)
        #expect(!ClientHint(userAgent: "Mozilla/5.0 (Android) Nextcloud-Talk v8").isAlertOnly)
        #expect(ClientHint(userAgent: nil) == .none && ClientHint(userAgent: "").products.isEmpty)
        #expect(ClientHint(userAgent: String(repeating: "a ", count: 1_000)).products.isEmpty)
        #expect(ClientHint(userAgent: ")((Nextcloud-Talk").products.isEmpty)
    }

    @Test("A hash is read in lower case alone, an identifier in the one base64 of 64 bytes")
    func hashes() throws {
        let hash = TokenHash(of: Secret("abc".utf8))
        // FIPS 180-4's own example.
        let hex =
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
            + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        #expect(String(decoding: hash.hex, as: UTF8.self) == hex)
        #expect(Array(hex.utf8).withUnsafeBytes { TokenHash(hex: $0) } == hash)
        #expect(Array(hex.uppercased().utf8).withUnsafeBytes { TokenHash(hex: $0) } == nil)
        #expect(Array((hex + "\n").utf8).withUnsafeBytes { TokenHash(hex: $0) } == nil)
        #expect("\(hash)" == "‹hash›")
        let raw = [UInt8](repeating: 0xFB, count: 64)
        let text = Base64.encode(raw)
        let identifier = try #require(text.withUnsafeBytes { DeviceIdentifier(base64: $0) })
        #expect(identifier.base64 == text && identifier == raw.withUnsafeBytes { DeviceIdentifier($0) })
        #expect("\(identifier)" == "‹device›")
        for bad in [Base64.encode(raw + [1]), Base64.encode(raw, .url), Array(text.dropLast()), []] {
            #expect(bad.withUnsafeBytes { DeviceIdentifier(base64: $0) } == nil)
        }
    }

    @Test(
        "An answer has both members for a batch, and neither when it is refused",
        arguments: NextcloudError.Code.allCases)
    func errors(_ code: NextcloudError.Code) throws {
        let answer = NextcloudErrorAnswer(NextcloudError(code))
        #expect((400..<600).contains(answer.status))
        let json = try JSONValue.parse(answer.body)
        #expect(json.object?.names == ["message", "code"] && json["code"]?.string == code.rawValue)
        #expect(json["message"]?.string?.isEmpty == false)
        #expect(NextcloudError(code).codeText == "\(NextcloudError(code))")
    }

    @Test("What waits says for how long, and a wrong method names the right ones")
    func headers() throws {
        let limited = NextcloudErrorAnswer(.rateLimited(retryAfter: .milliseconds(1_500)))
        #expect(limited.status == 429 && limited.headers.contains { $0.value == "2" })
        do throws(NextcloudError) {
            try NextcloudInbound.check(method: "GET", path: "/devices")
            Issue.record("it passed")
        } catch {
            let answer = NextcloudErrorAnswer(error)
            #expect(answer.status == 405 && answer.headers.first?.value == "POST, DELETE")
        }
    }

    @Test("A body over its bound is refused before it is read")
    func bodies() {
        for (path, limit) in [("/devices", 64 << 10), ("/notifications", 16 << 20)] {
            let body = [UInt8](repeating: 0x61, count: limit + 1)
            #expect(throws: NextcloudError(.bodyTooLarge)) {
                try withBytes(body) { (bytes) throws(NextcloudError) in
                    try NextcloudInbound.parse(method: "POST", path: path, body: bytes)
                }
            }
        }
    }

    @Test("Rows come back as they were written, and a row that we did not write is none")
    func rows() throws {
        let name = try #require(ConfiguredName("acme-talk"))
        let token = Secret("A1B2".utf8)
        for environment in [nil, Environment.production, .sandbox] {
            let target = NextcloudTarget(kind: .apns, token: token, app: name, environment: environment)
            let again = try #require(NextcloudTarget(body: target.body))
            #expect(again.token == token && again.app == name && again.environment == environment)
            for count in 0..<target.body.count {
                let cut = target.body.reveal { Secret($0.prefix(count)) }
                #expect(NextcloudTarget(body: cut) == nil)
            }
        }
        let pin = NextcloudPin(
            keyDER: [1, 2, 3], tokenHash: TokenHash(of: token), app: name,
            registeredAt: UnixTime(seconds: 5), voipPad: Secret([9, 9]))
        let again = try #require(NextcloudPin(body: pin.body))
        #expect(again.keyDER == [1, 2, 3] && again.tokenHash == pin.tokenHash && again.app == name)
        #expect(again.registeredAt == pin.registeredAt)
        #expect(again.voipPad.map { $0 == Secret([9, 9]) } == true)
        for count in 0..<pin.body.count {
            let cut = pin.body.reveal { Secret($0.prefix(count)) }
            #expect(NextcloudPin(body: cut) == nil)
        }
    }
}
