import PushModel
import Testing
import WireFormats
import ZulipPush

/// What an origin says in `aps` reaches Apple as it was said (docs/conformance/zulip.md); what Apple refuses,
/// Apple refuses.
@Suite("Zulip aps", .timeLimit(.minutes(30)))
struct ApsTests {
    static let objects = [
        // As Zulip 12.x sends it, with messages and with removals.
        #"{"mutable-content":1,"alert":{"title":"New notification"},"sound":"default"}"#,
        #"{"mutable-content":1}"#,
        // What Apple documents beyond that.
        #"{"alert":{"title-loc-key":"k","loc-args":["a","b"]},"sound":{"critical":1,"volume":0.5}}"#,
        #"{"interruption-level":"time-sensitive","relevance-score":1e-1,"badge":0}"#,
        // And what nobody sends yet.
        "{}", #"{"a":null,"b":true,"c":false,"d":-0.5E+3,"e":[],"f":[[{}]],"":""}"#,
        #"{ "spaced" : [ 1 , 2 ] }"#, #"{"escaped":"\"\\\/\b\f\n\r\t\u0000\ud83d\ude00","ż":"😀"}"#,
        #"{"twice":1,"twice":2}"#, #"{"large":123456789012345678901234567890,"small":1e999}"#,
        #"{"push_key_id":1,"encrypted_data":"x","aps":{"aps":1}}"#
    ]

    private func body(of object: String) -> String {
        #"{"push_key_id":1,"encrypted_data":"QUJD","aps":"# + object + "}"
    }

    @Test("Any object passes through byte for byte", arguments: objects)
    func passed(object: String) throws {
        let item = RealmRig.item("AAAAAAAAAAE=", extra: #","aps":"# + object)
        let body = Array(RealmRig.body([item]).utf8)
        let request = try withBytes(body) { (bytes) throws(ZulipError) in
            try NotifyRequest(parsing: bytes)
        }
        #expect(request.items[0].payload == Secret(self.body(of: object).utf8))
        #expect(!request.items[0].hasDefaultAps)
    }

    @Test("An iPhone's sound costs neither its own message nor that of the Android phone beside it")
    func wholeUser() async throws {
        let bench = try await RealmRig()
        let token = String(repeating: "t", count: 40)
        try await bench.relay.running { relay in
            let apple = try await bench.register("ab12", timestamp: bench.now.seconds)
            let google = try await bench.register(fcm: token, timestamp: bench.now.seconds)
            let items = [
                RealmRig.item(apple.text, extra: #","aps":"# + Self.objects[0]),
                RealmRig.fcm(
                    "\"\(google.text)\"", #""high""#, #"{"push_key_id":1,"encrypted_data":"QUJD"}"#)
            ]
            let answer = await bench.notify(raw: RealmRig.body(items))
            #expect(answer.status == 200)
            #expect(answer.json["apple_successfully_sent_count"]?.int64 == 1)
            #expect(answer.json["android_successfully_sent_count"]?.int64 == 1)
            let sent = relay.services.sends.first { $0["service"]?.string == "apns" }
            #expect(try sent?["body"] == JSONValue.parse(Array(body(of: Self.objects[0]).utf8)))
        }
    }

    @Test("Size and depth are bounded: Apple's 4,096 bytes of body, and as deep as a body may be")
    func bounds() async throws {
        let bench = try await RealmRig()
        let room = ZulipLimits.payloadBytes - body(of: #"{"a":""}"#).utf8.count
        for (count, status) in [(room, 200), (room + 1, 400)] {
            let object = #"{"a":""# + String(repeating: "x", count: count) + #""}"#
            let item = RealmRig.item("AAAAAAAAAAE=", extra: #","aps":"# + object)
            #expect(await bench.notify(raw: RealmRig.body([item])).status == status)
        }
        // Around `aps` there are the body, the list, the item and the payload.
        let room2 = ZulipLimits.jsonDepth - 4
        for (depth, status) in [(room2, 200), (room2 + 1, 400), (100_000, 400)] {
            let lists = depth - 1
            let object =
                #"{"a":"# + String(repeating: "[", count: lists) + String(repeating: "]", count: lists) + "}"
            let item = RealmRig.item("AAAAAAAAAAE=", extra: #","aps":"# + object)
            #expect(await bench.notify(raw: RealmRig.body([item])).status == status, "\(depth)")
        }
    }

    @Test("For Google aps is one more member to ignore, whatever it is")
    func atGoogle() async throws {
        let bench = try await RealmRig()
        for aps in ["null", "[1]", #""x""#, #"{"a":1}"#] {
            let item = RealmRig.fcm(
                #""AAAAAAAAAAE=""#, #""high""#, #"{"push_key_id":1,"encrypted_data":"QUJD","aps":\#(aps)}"#)
            #expect(await bench.notify(raw: RealmRig.body([item])).status == 200)
        }
    }

    // MARK: the app's own words

    private static let own = #"{"mutable-content":1,"alert":{"title":"Neue Nachricht"},"sound":"ping"}"#

    private func sent(appID: String, extra: String = "", fits: Int = 0) async throws -> (Int, JSONValue?) {
        let bench = try await RealmRig(
            fallbacks: FallbackAlerts([
                "org.example.app": FallbackAlerts.Words(aps: Array(Self.own.utf8), alert: Array("{}".utf8))
            ]))
        return try await bench.relay.running { relay in
            let id = try await bench.register("ab12", timestamp: bench.now.seconds, appID: appID)
            let data = String(repeating: "AAAA", count: max(1, fits / 4))
            let answer = await bench.notify(
                raw: RealmRig.body([RealmRig.item(id.text, data: data, extra: extra)]))
            return (answer.status, relay.services.sends.first?["body"]?["aps"])
        }
    }

    @Test("Where the origin gives no aps, an app with words of its own shows those, and others the deployed")
    func fallback() async throws {
        let own = try JSONValue.parse(Array(Self.own.utf8))
        #expect(try await sent(appID: "org.example.app") == (200, own))
        #expect(try await sent(appID: "org.example.app.voip") == (200, own))
        let deployed = try JSONValue.parse(NotifyItem.defaultAps)
        #expect(try await sent(appID: "org.example.other") == (200, deployed))
        // The origin's own stands.
        #expect(try await sent(appID: "org.example.app", extra: #","aps":{}"#) == (200, .object([:])))
    }

    @Test("Own words that leave the ciphertext no room give way to the deployed ones")
    func longFallback() async throws {
        // With the deployed words it fits, to the byte.
        let room = 4_096 - body(of: String(decoding: NotifyItem.defaultAps, as: UTF8.self)).utf8.count + 4
        let deployed = try JSONValue.parse(NotifyItem.defaultAps)
        #expect(try await sent(appID: "org.example.other", fits: room) == (200, deployed))
        #expect(try await sent(appID: "org.example.app", fits: room) == (200, deployed))
        #expect(try await sent(appID: "org.example.other", fits: room + 4).0 == 400)
    }

    @Test("The largest alert that the configuration takes beside the largest padded content refuses nothing")
    func largestAlert() async throws {
        let own = #"{"mutable-content":1,"alert":{"title":""# + String(repeating: "t", count: 500) + #""}}"#
        let words = FallbackAlerts.Words(aps: Array(own.utf8), alert: Array("{}".utf8))
        // 2,688 bytes of padded plaintext, sealed and spelled.
        let data = Base64.text([UInt8](repeating: 7, count: 2_688 + ContentBox.overheadBytes))
        for (data, isOwn) in [(data, false), ("QUJD", true)] {
            let bench = try await RealmRig(fallbacks: FallbackAlerts(["org.example.app": words]))
            try await bench.relay.running { relay in
                let id = try await bench.register(
                    "ab12", timestamp: bench.now.seconds, appID: "org.example.app")
                let answer = await bench.notify(raw: RealmRig.body([RealmRig.item(id.text, data: data)]))
                #expect(answer.status == 200)
                let aps = relay.services.sends.first?["body"]?["aps"]
                #expect(try aps == JSONValue.parse(isOwn ? Array(own.utf8) : NotifyItem.defaultAps))
            }
        }
    }
}
