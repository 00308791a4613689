import APNs
import Delivery
import FCM
@testable import HTTP2Client
import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Testing
import WireFormats

/// Rows of `marmot.json` that run through the whole relay: each meets a fresh one, with delivery and push
/// services that accept.
struct MarmotRelayVectors {
    private let runner: MarmotVectorRunner
    private let server: Secp256k1KeyPair

    init(_ runner: MarmotVectorRunner) throws {
        self.runner = runner
        server = try runner.pair(try #require(runner.json["keys"]?["server"]), "secret")
    }

    // MARK: the stage

    private func bench(
        _ pair: Secp256k1KeyPair? = nil, _ change: (inout MarmotServing) -> Void = { _ in }
    ) async throws -> MarmotRig {
        var serving = try MarmotServing(
            keys: [pair ?? server], topic: MarmotRig.topic, servesFCM: true)
        change(&serving)
        return try await MarmotRig(serving, now: runner.now)
    }

    /// The event as a relay sends it; one that is no event at all wakes nobody either.
    private func receive(_ event: JSONValue, at bench: MarmotRig) async -> MarmotRig.Result {
        do throws(MarmotError) {
            return await bench.receive(try NostrEvent.parse(Secret(event.serialized())))
        } catch {
            return MarmotRig.Result(refusal: error.code)
        }
    }

    // MARK: sections

    /// Accepted means that its devices are woken, each once; refused, that nobody is.
    func giftWrap(_ row: JSONValue) async throws -> Bool {
        let (event, expect) = (try #require(row["event"]), try #require(row["expect"]))
        let bench = try await bench(runner.named(row, "server"))
        return try holds(await bench.running { await receive(event, at: $0) }, expect)
    }

    private func holds(_ result: MarmotRig.Result, _ expect: JSONValue) throws -> Bool {
        guard expect["accept"]?.bool == true else { return result.count == 0 && result.refusal != nil }
        let devices = try #require(expect["devices"]?.array).map { device in
            Wake(
                platform: device["platform"]?.string == "apns" ? .apns : .fcm,
                tokenHex: try #require(device["token_hex"]?.string))
        }
        return result.refusal == nil && result.count == devices.count && result.wakes == Set(devices)
            && Int64(result.ignored) == expect["ignored"]?.int64
    }

    func replay(_ row: JSONValue) async throws -> Bool {
        let events = try #require(row["events"]?.array)
        let counts = try await bench().running { bench in
            var counts: [Int64] = []
            for event in events { counts.append(Int64(await receive(event, at: bench).count)) }
            return counts
        }
        return try counts == wakes(row)
    }

    private func wakes(_ row: JSONValue) throws -> [Int64] {
        try #require(row["wakes"]?.array).map { try #require($0.int64) }
    }

    /// Triggers are made here: a row says only when, and whether by one sender.
    func rateLimit(_ row: JSONValue) async throws -> Bool {
        let config = try #require(row["config"])
        let times = try #require(row["at"]?.array).map { try #require($0.int64) }
        let isOneSender = row["same_sender"]?.bool == true
        let bench = try await bench { serving in
            if let count = config["per_sender_per_minute"]?.int64 {
                serving.budgets.sender.perMinute = Int(count)
            }
            if let count = config["per_token_per_minute"]?.int64 {
                serving.budgets.deviceToken.perMinute = Int(count)
            }
        }
        let counts = try await bench.running { bench in
            let sender = Sender(bench.world, to: server)
            var counts: [Int64] = []
            var clock: Int64 = 0
            for at in times {
                bench.clock.advance(by: .seconds(at - clock))
                clock = at
                // One sender means one device after another; many senders mean one device.
                let chunks = [try sender.chunk(sender.device(.fcm, isOneSender ? Int(at) : 0), .seed)]
                let wrap =
                    isOneSender
                    ? try sender.wrap(sender.trigger(.seed, chunks)) : try sender.wrapped(.seed, chunks)
                counts.append(Int64(await bench.receive(wrap).count))
            }
            return counts
        }
        return try counts == wakes(row)
    }

    /// What our server subscribes to.
    func subscription(_ filter: JSONValue) async throws -> Bool {
        var writer = JSONWriter()
        // The row knows the text's two days alone; ours reaches an hour further back.
        try await bench().relay.subscription(slack: .zero).write(to: &writer)
        return try JSONValue.parse(writer.bytes) == filter
    }

    // MARK: requests

    /// The request that our sender of that service makes of a silent wake; both services are asked.
    func pushRequest(_ service: String) async throws -> Bool {
        let section = try #require(runner.json["push_requests"])
        let (apns, fcm) = (try #require(section["apns"]), try #require(section["fcm"]))
        let token = try runner.secret(apns, "device_token_hex")
        let text = try runner.text(fcm, "device_token")
        let sent = try await bench().running { bench in
            let sender = Sender(bench.world, to: server)
            let chunks = try [
                sender.chunk(DeviceTarget(.apns, token: token), .pushV1),
                sender.chunk(DeviceTarget(.fcm, token: Secret(text.utf8)), .pushV1)
            ]
            _ = await bench.receive(try sender.wrapped(.pushV1, chunks))
            return bench.services.sent
        }
        guard sent.count == 2 else { return false }
        for push in sent {
            if service == "apns", let message = push.message.apns { return try holds(message, push.id, apns) }
            if service == "fcm", let message = push.message.fcm { return try holds(message, fcm) }
        }
        return false
    }

    private func holds(_ message: APNsMessage, _ id: PushID, _ row: JSONValue) throws -> Bool {
        let authorization = HTTP2Authorization(scheme: "bearer", token: Secret("<ES256 JWT>".utf8))
        let request = try APNsRequest(authority: "api.push.apple.com").request(
            for: message, id: id, authorization: authorization)
        var fields = fields(request)
        // Ours beside the row's: the name of the push, by which a double is recognised; what keeps wakes from
        // piling up, the same for all.
        guard fields.removeValue(forKey: "apns-id") == id.text,
            fields.removeValue(forKey: "apns-collapse-id") == "wake",
            fields.removeValue(forKey: "apns-expiration") != nil
        else { return false }
        let expected: [String: String?] = [
            ":method": row["method"]?.string, ":path": row["path"]?.string,
            ":scheme": "https", ":authority": row["hosts"]?.array?.first?.string,
            "apns-topic": MarmotRig.topic, "apns-push-type": row["headers"]?["apns-push-type"]?.string,
            "apns-priority": row["headers"]?["apns-priority"]?.string,
            "authorization": row["headers"]?["authorization"]?.string
        ]
        let body = try message.payload.reveal { try JSONValue.parse($0) }
        return fields == expected.compactMapValues(\.self) && body == row["body"]
    }

    private func holds(_ message: FCMMessage, _ row: JSONValue) throws -> Bool {
        let authorization = HTTP2Authorization(scheme: "Bearer", token: Secret("<OAuth token>".utf8))
        let requests = FCMRequest(
            authority: try #require(row["host"]?.string), project: "<project>", addressKind: .token)
        let request = try requests.request(for: message, authorization: authorization)
        let expected: [String: String?] = [
            ":method": row["method"]?.string, ":path": row["path"]?.string, ":scheme": "https",
            ":authority": row["host"]?.string,
            "content-type": row["headers"]?["content-type"]?.string,
            "authorization": row["headers"]?["authorization"]?.string
        ]
        let text = try requests.body(for: message).reveal { String(decoding: $0, as: UTF8.self) }
        let own = ",\"ttl\":\"86400s\",\"collapse_key\":\"wake\""
        let body = try JSONValue.parse(Array(text.replacing(own, with: "").utf8))
        return fields(request) == expected.compactMapValues(\.self) && body == row["body"]
            && text.contains(own)
    }

    /// All fields of a request, as they go on the wire.
    private func fields(_ request: HTTP2Request) -> [String: String] {
        var fields: [String: String] = [:]
        var at = 0
        func text(_ start: UnsafeMutablePointer<UInt8>?, _ count: Int) -> String {
            String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
        }
        for slice in request.template.pseudo + request.template.fixed {
            fields[text(slice.name, slice.nameCount)] = text(slice.value, slice.valueCount)
        }
        for (position, varying) in request.template.varying.enumerated() {
            let count = Int(request.head.lengths[position])
            if count > 0 {
                fields[text(varying.name, varying.nameCount)] = text(request.head.start + at, count)
            }
            at += count
        }
        if let authorization = request.authorization {
            fields["authorization"] = String(decoding: authorization.bytes, as: UTF8.self)
        }
        return fields
    }
}
