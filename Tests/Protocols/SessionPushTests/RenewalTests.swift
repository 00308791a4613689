import EdwardsKeys
import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

@Suite("Session's device stays subscribed")
struct RenewalTests {
    private let now = DevicePhone.now

    @Test("Without a token there is nothing to subscribe with")
    func noToken() throws {
        var random = SeededRandom(seed: 3)
        var device = SessionRoutine(using: &random)
        try device.watch(WatchedAccount(SessionAccountKey(.generate(using: &random))))
        #expect(try device.renewal(due: now).isEmpty && device.nextDeadline == nil)
    }

    @Test("A new account is subscribed at once, with namespaces that rise")
    func first() throws {
        var phone = try DevicePhone()
        try phone.device.watch(WatchedAccount(phone.key, namespaces: [5, -3, 0, 5]))
        let call = try #require(try phone.device.renewal(due: now).first)
        #expect(call.endpoint == .subscribe)
        let element = try #require(try DevicePhone.elements(call).first)
        #expect(element["namespaces"]?.array?.compactMap(\.int64) == [-3, 0, 5])
        #expect(element["sig_ts"]?.int64 == 1_800_000_000)
        #expect(element["data"]?.bool == true)
        #expect(element["service_info"]?["token"]?.string == DevicePhone.tokenText)
        #expect(element["enc_key"]?.string == phone.device.encKey.reveal { Hex.encode($0) })
        // It is under way, and not made twice.
        #expect(try phone.device.renewal(due: now).isEmpty)
        #expect(phone.settle(call, DevicePhone.added(1)) == [.added])
        #expect(try phone.device.renewal(due: now).isEmpty)
    }

    @Test("A subscription is renewed between 12 hours and 7 days later, signed anew")
    func renewed() throws {
        var phone = try DevicePhone(accounts: 100)
        try phone.subscribe()
        let due = try #require(phone.device.nextDeadline)
        #expect(due >= now + .seconds(12 * 3_600))
        #expect(try phone.device.renewal(due: now + .seconds(12 * 3_600 - 1)).isEmpty)
        let later = now + .seconds(7 * 86_400)
        let call = try #require(try phone.device.renewal(due: later).first)
        let elements = try DevicePhone.elements(call)
        #expect(elements.count == 100)
        #expect(elements.allSatisfy { $0["sig_ts"]?.int64 == later.seconds })
        // Each has a time of its own.
        phone = try DevicePhone(accounts: 100)
        try phone.subscribe()
        let half = try phone.device.renewal(due: now + .seconds(4 * 86_400)).first
        let count = try half.map { try DevicePhone.elements($0).count } ?? 0
        #expect((10...90).contains(count))
    }

    @Test("A clock that was set back does not put a renewal off")
    func clock() throws {
        var phone = try DevicePhone()
        try phone.subscribe()
        #expect(try phone.device.renewal(due: now - .seconds(30 * 86_400)).count == 1)
    }

    @Test("Another token is told at once, and the old one is taken back")
    func tokenChange() throws {
        var phone = try DevicePhone()
        try phone.subscribe()
        let text = String(repeating: "b6", count: 32)
        phone.device.use(try DevicePhone.token(text))
        let calls = try phone.device.renewal(due: now + .seconds(5))
        #expect(calls.map(\.endpoint) == [.subscribe, .unsubscribe])
        #expect(try DevicePhone.elements(calls[0])[0]["service_info"]?["token"]?.string == text)
        let old = try DevicePhone.elements(calls[1])[0]
        #expect(old["service_info"]?["token"]?.string == DevicePhone.tokenText)
        #expect(old["namespaces"] == nil && old["enc_key"] == nil)
        #expect(phone.settle(calls[0], DevicePhone.added(1)) == [.added])
        let removed = DevicePhone.says(#"{"success":true,"removed":true}"#)
        #expect(phone.settle(calls[1], removed) == [.removed(wasThere: true)])
        #expect(try phone.device.renewal(due: now + .seconds(10)).isEmpty)
    }

    @Test("Other settings are told at once")
    func settings() throws {
        var phone = try DevicePhone()
        try phone.subscribe()
        try phone.device.watch(WatchedAccount(phone.key))
        #expect(try phone.device.renewal(due: now).isEmpty)
        try phone.device.watch(WatchedAccount(phone.key, namespaces: [0]))
        try phone.subscribe()
        #expect(try phone.device.renewal(due: now).isEmpty)
        try phone.device.watch(WatchedAccount(phone.key, namespaces: [0], content: .leftOut))
        let call = try #require(try phone.device.renewal(due: now).first)
        #expect(try DevicePhone.elements(call)[0]["data"]?.bool == false)
    }

    @Test("A call has a hundred elements and 100,000 bytes at most")
    func batches() throws {
        var phone = try DevicePhone(accounts: 250)
        let calls = try phone.device.renewal(due: now)
        #expect(try calls.map { try DevicePhone.elements($0).count } == [100, 100, 50])
        phone = try DevicePhone(accounts: 250)
        phone.device.use(
            try DevicePhone.token(String(repeating: "\\", count: 999), .firebase))
        let long = try phone.device.renewal(due: now)
        #expect(long.allSatisfy { $0.body.count <= 100_000 })
        #expect(try long.reduce(0) { try $0 + DevicePhone.elements($1).count } == 250)
        #expect(long.count > 3)
    }

    // MARK: answers

    @Test("Only an element that says so is a success")
    func elementwise() throws {
        var phone = try DevicePhone(accounts: 8)
        let call = try #require(try phone.device.renewal(due: now).first)
        let verdicts = phone.settle(
            call,
            DevicePhone.says(
                #"""
                [{"success":true,"added":true},{"success":true,"updated":true},{"error":3,"message":"x"},
                {"error":4},{"success":false},7,{"success":true,"error":1}]
                """#))
        #expect(verdicts.count == 8)
        #expect(Array(verdicts.prefix(2)) == [.added, .updated])
        #expect(verdicts[3] == .refused(error: 4) && verdicts[6] == .refused(error: 1))
        // The worker that was late, what says nothing, what is no object, and what is missing.
        for place in [2, 4, 5, 7] {
            guard case .later(let time) = verdicts[place] else {
                Issue.record("\(place): \(verdicts[place])")
                continue
            }
            #expect(time > now && time <= now + .seconds(15))
        }
        let again = try #require(try phone.device.renewal(due: now + .seconds(15)).first)
        #expect(try DevicePhone.elements(again).count == 4)
        #expect(try phone.device.renewal(due: now + .seconds(12 * 3_600)).count == 1)
    }

    @Test(
        "An answer to another question is none",
        arguments: [
            "", "x", "[]", "{}", "7", #""success""#, #"{"success":true}"#, #"[{"success":true}"#,
            #"[{"success":true},{"success":true},{"success":true}]"#, #"{"error":"4"}"#, "null",
            #"{"error":3}"#, #"[[{"success":true}],[{"success":true}]]"#
        ])
    func malformed(text: String) throws {
        var phone = try DevicePhone(accounts: 2)
        let call = try #require(try phone.device.renewal(due: now).first)
        for verdict in phone.settle(call, DevicePhone.says(text)) {
            if case .later = verdict { continue }
            Issue.record("\(verdict)")
        }
    }

    @Test("A refusal of the whole body concerns every account")
    func wholeRefusal() throws {
        var phone = try DevicePhone(accounts: 2)
        let call = try #require(try phone.device.renewal(due: now).first)
        #expect(
            phone.settle(call, DevicePhone.says(#"{"error":1,"message":"x"}"#))
                == [.refused(error: 1), .refused(error: 1)])
        // It would be refused again: not before half a day.
        #expect(try phone.device.renewal(due: now + .seconds(12 * 3_600 - 1)).isEmpty)
        #expect(try phone.device.renewal(due: now + .seconds(12 * 3_600)).count == 1)
        #expect(try SessionRoutine(keeping: phone.device.encoded()).encKey == phone.device.encKey)
    }

    @Test("A status tells whether to try again", arguments: [403, 404, 400, 413])
    func refusedCalls(status: Int) throws {
        var phone = try DevicePhone()
        let call = try #require(try phone.device.renewal(due: now).first)
        #expect(phone.settle(call, DevicePhone.says("", status: status)) == [.refusedCall(status: status)])
        #expect(try phone.device.renewal(due: now + .seconds(3_600)).isEmpty)
    }

    @Test("Failures are repeated after 15 s, doubled up to an hour", arguments: [nil, 500, 502, 429, 408])
    func backsOff(status: Int?) throws {
        var phone = try DevicePhone()
        var time = now
        var pauses: [Int64] = []
        for _ in 0..<24 {
            let call = try #require(try phone.device.renewal(due: time).first)
            let answer = status.map { DevicePhone.says("", status: $0) } ?? .none
            guard case .later(let next)? = phone.settle(call, answer, at: time).first else {
                Issue.record("to be tried later")
                return
            }
            pauses.append(next.since(time).wholeMilliseconds)
            #expect(phone.device.nextDeadline == next)
            time = next
        }
        for (place, pause) in pauses.enumerated() {
            let whole = min(Int64(15_000) << Int64(place), 3_600_000)
            #expect((whole * 3 / 4...whole).contains(pause), "pause \(place): \(pause)")
        }
        try phone.subscribe(at: time)
        #expect(try #require(phone.device.nextDeadline) >= time + .seconds(12 * 3_600))
    }

    @Test("A call that nobody settles is made again, and its late answer says nothing")
    func lost() throws {
        var phone = try DevicePhone()
        let call = try #require(try phone.device.renewal(due: now).first)
        #expect(phone.device.nextDeadline == now + .seconds(300))
        #expect(try phone.device.renewal(due: now + .seconds(299)).isEmpty)
        let again = try #require(try phone.device.renewal(due: now + .seconds(300)).first)
        #expect(phone.settle(call, DevicePhone.added(1)).isEmpty)
        #expect(phone.settle(again, DevicePhone.added(1)) == [.added])
        #expect(phone.settle(again, DevicePhone.added(1)).isEmpty)
    }

    // MARK: leaving

    @Test("An account that leaves is taken back, also by a phone that has lost its key")
    func leaves() throws {
        var phone = try DevicePhone()
        try phone.subscribe()
        try phone.device.leave(phone.key.account, now: now)
        // What the phone knew is gone but for what it kept.
        phone.device = try SessionRoutine(keeping: phone.device.encoded())
        phone.device.use(try DevicePhone.token())
        let call = try #require(try phone.device.renewal(due: now).first)
        #expect(call.endpoint == .unsubscribe)
        guard case .later(let next)? = phone.settle(call, .none).first else {
            Issue.record("to be tried later")
            return
        }
        let again = try #require(try phone.device.renewal(due: next).first)
        #expect(
            phone.settle(again, DevicePhone.says(#"{"success":true,"removed":false}"#), at: next)
                == [.removed(wasThere: false)])
        #expect(try phone.device.renewal(due: next).isEmpty && phone.device.nextDeadline == nil)
    }

    @Test("Taking back is given up when its signature is old, or refused")
    func givesUp() throws {
        var phone = try DevicePhone()
        try phone.subscribe()
        try phone.device.leave(phone.key.account, now: now)
        #expect(try phone.device.renewal(due: now + .seconds(23 * 3_600)).isEmpty)
        try phone.device.watch(WatchedAccount(phone.key))
        try phone.subscribe()
        try phone.device.leave(phone.key.account, now: now)
        let call = try #require(try phone.device.renewal(due: now).first)
        #expect(phone.settle(call, DevicePhone.says(#"{"error":4}"#)) == [.refused(error: 4)])
        #expect(try phone.device.renewal(due: now).isEmpty)
    }

    @Test("An account that comes back is not taken back, and is signed later than its end")
    func comesBack() throws {
        var phone = try DevicePhone()
        try phone.subscribe()
        try phone.device.leave(phone.key.account, now: now)
        try phone.device.watch(WatchedAccount(phone.key))
        let calls = try phone.device.renewal(due: now)
        #expect(calls.map(\.endpoint) == [.subscribe])
        #expect(try DevicePhone.elements(calls[0])[0]["sig_ts"]?.int64 == now.seconds + 1)
        // An account that never was subscribed has nothing to take back.
        var other = try DevicePhone()
        try other.device.leave(other.key.account, now: now)
        try other.device.leave(phone.key.account, now: now)
        #expect(try other.device.renewal(due: now).isEmpty)
    }

    @Test("An account that comes back while its end is under way waits for the answer to that")
    func waitsForEnd() throws {
        var phone = try DevicePhone(accounts: 2)
        try phone.subscribe()
        try phone.device.leave(phone.key.account, now: now)
        let end = try #require(try phone.device.renewal(due: now).first)
        try phone.device.watch(WatchedAccount(phone.key))
        #expect(try phone.device.renewal(due: now).isEmpty, "nothing overtakes the end")
        #expect(try #require(phone.device.nextDeadline) > now, "and nobody asks again at once")
        let removed = DevicePhone.says(#"{"success":true,"removed":true}"#)
        #expect(phone.settle(end, removed) == [.removed(wasThere: true)])
        let back = try #require(try phone.device.renewal(due: now).first)
        #expect(back.endpoint == .subscribe)
        #expect(try DevicePhone.elements(back)[0]["sig_ts"]?.int64 == now.seconds + 1)
        // Another token of the account is another subscription, and waits for nothing.
        #expect(phone.settle(back, DevicePhone.added(1)) == [.added])
        try phone.device.leave(phone.key.account, now: now + .seconds(9))
        _ = try phone.device.renewal(due: now + .seconds(9))
        try phone.device.watch(WatchedAccount(phone.key))
        phone.device.use(try DevicePhone.token(String(repeating: "b6", count: 32)))
        let other = try phone.device.renewal(due: now + .seconds(9)).filter { $0.endpoint == .subscribe }
        #expect(try other.flatMap { try DevicePhone.elements($0) }.count == 2)
    }

    @Test("An end that may overtake a subscription of its own second is signed later")
    func overtaking() throws {
        var phone = try DevicePhone()
        _ = try phone.device.renewal(due: now)
        try phone.device.leave(phone.key.account, now: now)
        let end = try #require(try phone.device.renewal(due: now).first)
        #expect(try DevicePhone.elements(end)[0]["sig_ts"]?.int64 == now.seconds + 1)
    }

    @Test("An end whose answer was lost is given up when the account is back; whatever it ended is renewed")
    func lostEnd() throws {
        var phone = try DevicePhone()
        try phone.subscribe()
        try phone.device.leave(phone.key.account, now: now)
        let end = try #require(try phone.device.renewal(due: now).first)
        try phone.device.watch(WatchedAccount(phone.key))
        let later = now + SessionLimits.callDeadline
        let back = try phone.device.renewal(due: later)
        #expect(back.map(\.endpoint) == [.subscribe])
        #expect(phone.settle(end, DevicePhone.says(#"{"success":true,"removed":true}"#), at: later).isEmpty)
        #expect(phone.settle(back[0], DevicePhone.added(1), at: later) == [.added])
        #expect(try phone.device.renewal(due: later).isEmpty)
    }

    // MARK: keeping

    @Test("A restarted phone goes on where it was")
    func restart() throws {
        var phone = try DevicePhone(accounts: 3)
        try phone.subscribe()
        let due = phone.device.nextDeadline
        var restarted = try SessionRoutine(keeping: phone.device.encoded())
        #expect(restarted.encKey == phone.device.encKey)
        try restarted.watch(WatchedAccount(phone.key))
        restarted.use(try DevicePhone.token())
        #expect(try restarted.renewal(due: now).isEmpty)
        #expect(try #require(restarted.nextDeadline) >= #require(due))
        #expect(try restarted.renewal(due: now + .seconds(7 * 86_400)).count == 1)
    }

    @Test("What was not kept by a device is refused, cut at any length and changed anywhere")
    func malformedRows() throws {
        var phone = try DevicePhone(accounts: 2)
        try phone.subscribe()
        try phone.device.leave(phone.key.account, now: now)
        let kept = phone.device.encoded()
        for length in 0..<kept.count {
            let cut = kept.reveal { Secret($0[..<length]) }
            #expect(throws: SessionError(.malformedRow), "length \(length)") {
                try SessionRoutine(keeping: cut)
            }
        }
        let row = kept.reveal { String(decoding: $0, as: UTF8.self) }
        for (from, to) in [
            ("leaving", "staying"), ("apns", "apple"), ("[[\"", "[[\"x"), ("],[", "],[\"zz\"],["),
            ("[[", "[[[]],[")
        ] {
            let changed = row.replacing(from, with: to, maxReplacements: 1)
            #expect(throws: SessionError(.malformedRow), "\(from) → \(to)") {
                try SessionRoutine(keeping: Secret(changed.utf8))
            }
        }
        let huge = Secret([UInt8](repeating: 0x20, count: 5 << 20))
        #expect(throws: SessionError(.malformedRow)) { try SessionRoutine(keeping: huge) }
    }

    @Test("Tokens, namespaces and accounts beyond what a server takes are refused on the phone")
    func bounds() throws {
        for text in ["", String(repeating: "a", count: 63), String(repeating: "g", count: 64)] {
            #expect(throws: SessionError(.malformedToken)) { try DevicePhone.token(text) }
        }
        for text in [String(repeating: "a", count: 31), String(repeating: "a", count: 1_000), "a b"] {
            #expect(throws: SessionError(.malformedToken)) { try DevicePhone.token(text, .firebase) }
        }
        let phone = try DevicePhone()
        for spaces in [[], (0...256).map { Int16($0) }] {
            #expect(throws: SessionError(.malformedNamespaces)) {
                try WatchedAccount(phone.key, namespaces: spaces)
            }
        }
        #expect(throws: SessionError(.malformedKey)) {
            try SessionAccountKey(seed: Secret([UInt8](repeating: 1, count: 31)))
        }
    }
}
