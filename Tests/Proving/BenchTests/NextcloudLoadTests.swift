import NIOCore
import NextcloudPush
import PushModel
import RSAKeys
import Testing
import WireFormats

@testable import Bench

@Suite("Nextcloud as the trials ask in it", .timeLimit(.minutes(30)))
struct NextcloudLoadTests {
    private let load = NextcloudLoad()

    private func origin(
        _ count: Int = 12
    ) throws -> (origin: any LoadOrigin, registrations: PreparedRequests) {
        var origin = load.makeOrigin(host: "h", publicKey: [], bundle: "b", world: .live)
        let registrations = try origin.addDevices(count, .apns)
        return (origin, registrations)
    }

    /// Reads a request's head and body as the relay does.
    private func read(_ request: [UInt8]) throws -> (inbound: NextcloudInbound, body: [UInt8]) {
        let text = String(decoding: request, as: UTF8.self)
        let end = try #require(text.firstRange(of: "\r\n\r\n"))
        let line = text.prefix { $0 != "\r\n" }.split(separator: " ")
        let prefix = "/" + NextcloudLoad.instance
        #expect(line.first == "POST" && line[1].hasPrefix(prefix))
        let body = Array(text[end.upperBound...].utf8)
        #expect(text[..<end.lowerBound].contains("\r\nContent-Length: \(body.count)"))
        let inbound = try body.withUnsafeBytes { (body) throws(NextcloudError) in
            try NextcloudInbound.parse(
                method: "POST", path: String(line[1].dropFirst(prefix.count)),
                contentType: "application/x-www-form-urlencoded", body: body)
        }
        return (inbound, body)
    }

    /// What a push service is sent for each entry of a call.
    private func bodies(_ call: LoadCall) throws -> [[UInt8]] {
        try entries(call).map { entry in
            let (subject, signature) = (entry["subject"]?.string ?? "", entry["signature"]?.string ?? "")
            return Array(#"{"aps":{},"subject":"\#(subject)","signature":"\#(signature)"}"#.utf8)
        }
    }

    private func entries(_ call: LoadCall) throws -> [JSONValue] {
        try Form.parse(call.body).fields.map { try JSONValue.parse($0.value) }
    }

    @Test("Its devices register as apps do, signed by the keys of several users")
    func registrations() throws {
        let (origin, prepared) = try origin()
        var keys: Set<[UInt8]> = []
        for index in 0..<prepared.count {
            let inbound = try read(Array(prepared[index].readableBytesView)).inbound
            guard case .register(let form) = inbound.call else {
                Issue.record("\(index) is no registration")
                continue
            }
            #expect(form.ownership.isSigned)
            #expect(form.pushToken == Secret(origin.devices[index].token.utf8))
            let identifier = String(decoding: form.ownership.identifier.base64, as: UTF8.self)
            #expect(identifier == origin.devices[index].name)
            keys.insert(form.ownership.key.der)
        }
        #expect(prepared.count == 12 && Set(origin.devices.map(\.name)).count == 12)
        #expect((1...3).contains(keys.count))
    }

    @Test(
        "Each entry has a signature of its own by the device's user, and none is a call that is owed a minute"
    )
    func entries() throws {
        let (origin, prepared) = try origin()
        var keys: [String: RSAPublicKey] = [:]
        for index in 0..<prepared.count {
            guard case .register(let form) = try read(Array(prepared[index].readableBytesView)).inbound.call
            else { continue }
            keys[origin.devices[index].name] = form.ownership.key
        }
        // The first device twice: what its relay must not take as one.
        let targets = origin.devices + [origin.devices[0]]
        let call = try origin.notify(targets, contentBytes: 100)
        guard case .notify(.read(let batch)) = try read(call.head + call.body).inbound.call else {
            Issue.record("no notifications call that is read at once")
            return
        }
        #expect(batch.malformed == 0 && batch.entries.count == targets.count)
        for (entry, device) in zip(batch.entries, targets) {
            #expect(entry.tokenHash == TokenHash(of: Secret(device.token.utf8)) && entry.kind != .voip)
        }
        var signatures: Set<String> = []
        for entry in try entries(call) {
            let key = try #require(keys[entry["deviceIdentifier"]?.string ?? ""])
            let subject = try Base64.decode(entry["subject"]?.string ?? "")
            let signature = try Base64.decode(entry["signature"]?.string ?? "")
            let isValid = subject.withUnsafeBytes { subject in
                signature.withUnsafeBytes { key.isValid($0, over: subject) }
            }
            #expect(isValid && subject.count == 256)
            signatures.insert(Base64.text(signature))
        }
        #expect(signatures.count == targets.count)
    }

    @Test("A push is known in what either push service is sent, and in no body of another protocol")
    func marks() {
        let apple = #"{"aps":{"alert":{}},"subject":"abcdefghijklmnopq==","signature":"r"}"#
        let google = #"{"message":{"token":"t","data":{"subject":"abcdefghijklmno","signature":"r"}}}"#
        for body in [apple, google] { #expect(load.mark(in: Array(body.utf8)) == "abcdefghijklmno") }
        for body in ["", "{}", #"{"subject":"short"}"#, #"{"encrypted_data":"abcdefghijklmnopq"}"#] {
            #expect(load.mark(in: Array(body.utf8)) == nil, "\(body)")
        }
    }

    @Test("An answer acknowledges all entries only where none is unknown and none failed")
    func answers() {
        #expect(load.areAlive(#"{"unknown":[],"failed":0}"#))
        let others = [
            #"{"unknown":[],"failed":1}"#, #"{"unknown":["aa"],"failed":1}"#,
            #"{"unknown":["aa"],"failed":0}"#,
            #"{"unknown":[]}"#, #"{"failed":0}"#, "{}", "", "<html>", #"{"unknown":[],"failed":"0"}"#,
            #"{"delete_token_ids":[]}"#
        ]
        for answer in others { #expect(!load.areAlive(answer), "\(answer)") }
    }

    @Test("A push that was acknowledged and lost, or made twice, fails the trial in this protocol's name")
    func faults() throws {
        let (origin, _) = try origin(4)
        let call = try origin.notify(origin.devices, contentBytes: 1)
        let bodies = try bodies(call)
        #expect(Set(call.marks).count == 4 && bodies.map { load.mark(in: $0) } == call.marks)
        let now = UnixTime(seconds: 1_000)
        func result(_ arrivals: [(body: [UInt8], id: String)], answer: String) -> TrialVerdict {
            var ledger = TrialLedger()
            ledger.asked(call.marks, of: load.name)
            ledger.acknowledged(call.marks, areAlive: load.areAlive(answer))
            for arrival in arrivals {
                ledger.arrived(load.mark(in: arrival.body) ?? "", .init(id: arrival.id, at: now))
            }
            #expect(ledger.foreignArrivals == 0)
            #expect(ledger.answersWithDeadDevices == (load.areAlive(answer) ? 0 : 1))
            return TrialVerdict(ledger)
        }
        let all = bodies.map { ($0, "id") }
        let taken = #"{"unknown":[],"failed":0}"#
        let sound = result(all, answer: taken)
        #expect(sound.hasPassed && sound.shares["nextcloud"]?.acknowledged == 4)
        let lost = result(Array(all.dropLast()), answer: taken)
        #expect(!lost.hasPassed && lost.shares["nextcloud"]?.lost == 1)
        let twice = result(all + [(bodies[0], "other")], answer: taken)
        #expect(!twice.hasPassed && twice.doubledUnderTwoNames == 1)
        _ = result(all, answer: #"{"unknown":[],"failed":4}"#)
    }
}
