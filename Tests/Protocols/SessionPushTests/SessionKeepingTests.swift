import Primitives
import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

/// What an app keeps of its device between two runs.
@Suite("Session device, kept", .timeLimit(.minutes(30)))
struct SessionKeepingTests {
    /// A device at each point of its life.
    private func points() throws -> [SessionKitPhone] {
        var phone = try SessionKitPhone()
        var points = [phone]
        func note() { points.append(phone) }
        try phone.tell()
        for status in [nil, 404, 200] {
            phone.now = max(phone.now, phone.device.nextDue ?? phone.now)
            let call = try phone.due()
            note()
            phone.answer(status, SessionKitPhone.added, to: call)
            note()
        }
        let message = try #require(try phone.device.open(phone.push(), at: phone.now).content)
        phone.device.stored(message)
        note()
        try phone.device.use(token: nil)
        note()
        for status in [503, 200] {
            phone.now = max(phone.now, phone.device.nextDue ?? phone.now)
            let call = try phone.due()
            note()
            phone.answer(status, SessionKitPhone.removed, to: call)
            note()
        }
        #expect(phone.device.isGone)
        return points
    }

    @Test("It reads back at every point, in the same bytes, and goes on to the same end")
    func readsBack() throws {
        for (place, point) in try points().enumerated() {
            let again = try SessionDevice(point.server, keeping: point.device.kept)
            #expect(again.kept == point.device.kept, "point \(place)")
            var phone = point
            try phone.restart()
            phone.now = phone.now + .seconds(7 * 86_400)
            for call in phone.device.due(at: phone.now, using: &phone.random) {
                phone.answer(
                    200, call.url.hasSuffix("/subscribe") ? SessionKitPhone.added : SessionKitPhone.removed,
                    to: call)
            }
            #expect(phone.device.status(at: phone.now).state == .active, "point \(place)")
        }
    }

    @Test("What is cut at any length, or has another byte anywhere, is refused")
    func falsified() throws {
        var phone = try SessionKitPhone.subscribed()
        try phone.device.leave(phone.key.account, at: phone.now)
        try phone.device.watch(WatchedAccount(SessionAccountKey(.generate(using: &phone.random), .group)))
        _ = phone.device.due(at: phone.now, using: &phone.random)
        let kept = phone.device.kept.reveal { Array($0) }
        func isRefused(_ bytes: [UInt8]) -> Bool {
            do throws(DeviceError) {
                _ = try SessionDevice(phone.server, keeping: Secret(bytes))
                return false
            } catch { return error == DeviceError(.malformedKept) }
        }
        for length in 0..<kept.count { #expect(isRefused(Array(kept[..<length])), "length \(length)") }
        var random = SeededRandom(seed: 51)
        for at in kept.indices {
            var changed = kept
            changed[at] ^= UInt8.random(in: 1...255, using: &random)
            #expect(isRefused(changed), "byte \(at)")
        }
        #expect(isRefused(kept + [0x20]) && isRefused([UInt8](repeating: 0x20, count: 5 << 20)))
    }

    @Test("Rows that are whole and make no device are refused, and no account's key is kept")
    func rows() throws {
        let server = try SessionServer(host: "push.example.org", key: nil)
        let title: StaticString = "sealbell session device"
        func cells(_ texts: [String]) -> [Secret] { texts.map { Secret($0.utf8) } }
        let head = cells([String(repeating: "0", count: 32), "no", ""])
        let key = cells([String(repeating: "4", count: 64)])
        _ = try SessionDevice(server, keeping: KeptForm.write(title, [head, key, [], []]))
        let wrong: [[[Secret]]] = [
            [], [head], [head, key], [head, key, []], [head, cells(["44"]), [], []],
            [cells(["0", "no", ""]), key, [], []], [Array(head.dropLast()), key, [], []],
            [cells([head[0].word, "maybe", ""]), key, [], []],
            [cells([head[0].word, "no", "x"]), key, [], []], [head, key, cells(["zz"]), []],
            [head, key, [], cells(["leaving"])], [head, key, [], cells(["a"])]
        ]
        for rows in wrong {
            #expect(throws: DeviceError(.malformedKept)) {
                try SessionDevice(server, keeping: KeptForm.write(title, rows))
            }
        }
        var phone = try SessionKitPhone.subscribed()
        try phone.device.leave(phone.key.account, at: phone.now)
        let text = phone.device.kept.reveal { String(decoding: $0, as: UTF8.self) }
        for secret in [phone.key.pair.seed.hexDigits, phone.key.pair.seed] {
            let seed = secret.reveal { String(decoding: $0, as: UTF8.self) }
            #expect(!text.contains(seed))
        }
    }
}
