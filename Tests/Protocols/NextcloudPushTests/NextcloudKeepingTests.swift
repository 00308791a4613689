import NextcloudPush
import PushModel
import PushTesting
import RSAKeys
import Testing
import WireFormats

/// What an app keeps of its device between two runs.
@Suite("Nextcloud device, kept", .timeLimit(.minutes(30)))
struct NextcloudKeepingTests {
    private let ends: Ends

    init() throws { ends = try Ends() }

    /// A device at each point of its life.
    private func points() throws -> [NextcloudKitPhone] {
        var points = [try NextcloudKitPhone(ends)]
        var phone = points[0]
        func note() { points.append(phone) }
        try phone.tell()
        for (status, body) in [
            (200, NextcloudKitPhone.capabilities), (201, try ends.serverAnswer()), (409, "")
        ] {
            let call = try phone.due()
            note()
            phone.answer(status, body, to: call)
            note()
        }
        phone.answer(503, to: try phone.due())
        note()
        phone = try NextcloudKitPhone.registered(ends)
        note()
        var refused = phone
        refused.device.registerAgain()
        refused.answer(401, to: try refused.due())
        points.append(refused)
        try phone.device.use(token: nil)
        note()
        for status in [nil, 202, 503, 200] {
            phone.now = max(phone.now, phone.device.nextDue ?? phone.now)
            let call = try phone.due()
            note()
            phone.answer(status, to: call)
            note()
        }
        #expect(phone.device.isGone)
        return points
    }

    @Test("It reads back at every point, in the same bytes, and goes on to the same end")
    func readsBack() throws {
        for (place, point) in try points().enumerated() {
            let kept = point.device.kept
            #expect(kept.count <= 6 << 10, "point \(place)")
            let again = try NextcloudDevice(ends.login, keeping: kept)
            #expect(again.kept == kept, "point \(place)")
            var phone = point
            try phone.restart()
            phone.now = phone.now + .seconds(86_400)
            try phone.register()
            var leaver = point
            try leaver.restart(leaves: true)
            for _ in 0..<2 {
                for call in leaver.device.due(at: leaver.now + .seconds(600), using: &leaver.random) {
                    leaver.device.answered(
                        .http(status: 200, body: Secret([])), to: call, at: leaver.now, using: &leaver.random)
                }
            }
            #expect(leaver.device.isGone, "point \(place)")
        }
    }

    @Test(
        "With another app password or login name it registers anew at once, and once",
        arguments: [("alice@example.org", "another"), ("alice", "aaaaa-bbbbb")])
    func otherLogin(_ name: String, _ password: String) throws {
        var phone = try NextcloudKitPhone.registered(ends)
        let known = ends.login.account
        let login = NextcloudLogin(
            NextcloudAccount(
                serverURL: known.serverURL, userID: known.userID, loginName: name,
                appPassword: Secret(password.utf8)), ends.login.app)
        try phone.restart()
        #expect(phone.isIdle(), "the login is the same")
        // A form before this one does not say whose it is; what is kept next does.
        let rows = try KeptForm.read("sealbell nextcloud device", phone.device.kept, atMost: 16 << 10)
        let former = KeptForm.write(
            "sealbell nextcloud device", [Array(rows[0].dropLast())] + rows.dropFirst())
        var earlier = phone
        earlier.device = try NextcloudDevice(login, keeping: former)
        try earlier.tell()
        #expect(earlier.isIdle())

        try phone.restart(login)
        let basic = Base64.text(Array("\(name):\(password)".utf8))
        #expect(try phone.peek().http?.headers.contains { $0.value == Secret("Basic \(basic)".utf8) } == true)
        // Begun and not ended, it goes on in the next run.
        try phone.restart(login)
        try phone.register()
        try phone.restart(login)
        #expect(phone.isIdle())
        try phone.restart(ends.login)
        #expect(!phone.isIdle(), "and back")
    }

    @Test("What is kept of the login is too little to try passwords with, and nothing that other phones keep")
    func mark() throws {
        let title: StaticString = "sealbell nextcloud device"
        func kept(_ device: NextcloudDevice) throws -> Secret {
            let head = try KeptForm.read(title, device.kept, atMost: 16 << 10)[0]
            return try #require(head.last)
        }
        let own = try kept(NextcloudDevice(ends.login, key: ends.deviceKey))
        #expect(own.count == 4)
        let others = try (0..<3).map { _ in
            try kept(NextcloudDevice(ends.login, key: RSAPrivateKey.generate()))
        }
        #expect(others.contains { !($0 == own) }, "one login on four phones")
    }

    @Test("What is cut at any length, or has another byte anywhere, is refused")
    func falsified() throws {
        var phone = try NextcloudKitPhone.registered(ends)
        try phone.device.use(token: nil)
        let kept = phone.device.kept.reveal { Array($0) }
        func isRefused(_ bytes: [UInt8]) -> Bool {
            do throws(DeviceError) {
                _ = try NextcloudDevice(ends.login, keeping: Secret(bytes))
                return false
            } catch { return error == DeviceError(.malformedKept) }
        }
        for length in 0..<kept.count {
            #expect(isRefused(Array(kept[..<length])), "length \(length)")
        }
        var random = SeededRandom(seed: 31)
        for at in kept.indices {
            var changed = kept
            changed[at] ^= UInt8.random(in: 1...255, using: &random)
            #expect(isRefused(changed), "byte \(at)")
        }
        #expect(isRefused(kept + [0x20]) && isRefused([0x20] + kept))
        #expect(isRefused([UInt8](repeating: 0x5B, count: 64 << 10)))
    }

    @Test("Rows that are whole and make no device are refused")
    func rows() throws {
        let title: StaticString = "sealbell nextcloud device"
        let key = ends.deviceKey.pem
        func head(_ cells: [String]) -> [Secret] { [key] + cells.map { Secret($0.utf8) } }
        let good = ["alice@cloud.example.org", "no", "0", "", "", ""]
        _ = try NextcloudDevice(ends.login, keeping: KeptForm.write(title, [head(good)]))
        var wrong = [[], [[]], [head(good), head(good)], [Array(head(good).dropLast())]]
        for (place, cell) in [(1, "maybe"), (2, "-1"), (2, "18"), (2, "x"), (3, "x"), (4, "1.5"), (5, "x")] {
            var cells = good
            cells[place] = cell
            wrong.append([head(cells)])
        }
        wrong.append([[Secret("no key".utf8)] + good.map { Secret($0.utf8) }])
        _ = try NextcloudDevice(ends.login, keeping: KeptForm.write(title, [head(good + ["0000"])]))
        // A mark of another length, and more than it.
        for more in [["x"], ["00000"], ["0000", ""]] { wrong.append([head(good + more)]) }
        for word in ["registration", "leaving"] { wrong.append([head(good), [Secret(word.utf8)]]) }
        for rows in wrong {
            #expect(throws: DeviceError(.malformedKept)) {
                try NextcloudDevice(ends.login, keeping: KeptForm.write(title, rows))
            }
        }
        #expect(throws: DeviceError(.malformedKept)) {
            try NextcloudDevice(ends.login, keeping: KeptForm.write("another", [head(good)]))
        }
    }
}
