#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import ArgumentParser
import Primitives
import PushModel
import WireFormats

/// A device as its server names it, beside its realm.
struct DeviceNameOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The device's token id, 12 characters of base64 (servers of 12).", valueName: "id")
    )
    var tokenID: String?

    @Option(
        help: ArgumentHelp(
            "The number that the relay gave the device (servers of 11, and after the specification).",
            valueName: "number"))
    var deviceID: String?

    var isGiven: Bool { tokenID != nil || deviceID != nil }
    var isOne: Bool { (tokenID == nil) != (deviceID == nil) }
}

/// A registration by what an operator has of it, and which of its pushes are told.
struct RegistrationOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A file that holds the device token.", discussion: "Never the token itself.", valueName: "file"))
    var token: String?

    @Option(
        help: ArgumentHelp("The registration's realm, with the device's token id or number.", valueName: "id")
    )
    var realm: String?

    @OptionGroup var device: DeviceNameOptions

    @Option(
        help: ArgumentHelp(
            "An account or its hash, as its protocol names it to a relay (docs/guides/operating.md).",
            valueName: "account"))
    var account: String?

    @Option(
        help: ArgumentHelp(
            "The code that the app shows for support, as its user reads it; good for 72 hours.",
            valueName: "code"))
    var code: String?

    @Option(
        help: ArgumentHelp(
            "Pushes from then on: 36h or 3d ago, or 2026-11-27 or 2026-11-27T09:00 (UTC).",
            valueName: "time"))
    var since: String?

    @Option(help: ArgumentHelp("Pushes before that time.", valueName: "time"))
    var until: String?

    @Option(help: ArgumentHelp("At most so many lines of each registration, the latest.", valueName: "count"))
    var last: Int?

    @OptionGroup var place: InstanceOption

    private var isDevice: Bool { realm != nil || device.isGiven }

    /// By how many things a registration is named; it must be one.
    private var ways: Int { [token != nil, isDevice, account != nil, code != nil].count { $0 } }

    var isGiven: Bool { ways > 0 || since != nil || until != nil || last != nil }

    func validate() throws {
        guard ways <= 1 else {
            throw ValidationError("Name the registration by one thing.")
        }
        guard isDevice else {
            guard !isGiven || ways == 1 else {
                throw ValidationError("A time or a count is for a registration: name one.")
            }
            if let code, SupportCode(code) == nil {
                throw ValidationError("A support code has 12 letters and digits, such as 7K3M-Q0XD-2HVA.")
            }
            return try validateSpan()
        }
        guard let realm, device.isOne else {
            throw ValidationError("Name a device by --realm, and by --token-id or --device-id.")
        }
        guard UUIDText(realm.lowercased()) != nil else {
            throw ValidationError("A realm is named by its UUID.")
        }
        try validateSpan()
    }

    private func validateSpan() throws {
        let now = UnixTime(seconds: 2_000_000_000)
        for text in [since, until].compactMap(\.self) where TimeWord.read(text, at: now) == nil {
            throw ValidationError("A time is 36h or 3d ago, or 2026-11-27 or 2026-11-27T09:00 (UTC).")
        }
        if let last, last < 1 { throw ValidationError("At least one line.") }
    }

    /// - Returns: `.failed` when nothing of that name is registered.
    func tell(_ adminListener: AdminListenerOptions, _ shell: Shell) async throws -> Ending {
        let address = try token.map { (file) throws(CommandFailure) in try readAddress(file, shell) }
        let names: [(key: StaticString, value: String)] = [
            ("realm", realm?.lowercased()), ("token_id", device.tokenID), ("device_id", device.deviceID),
            ("account", account), ("code", code)
        ].compactMap { key, value in value.map { (key, $0) } }
        let answer = try await adminListener.ask(HistoryDesk.path, shell) { json in
            if let address { json.member("address", utf8: address) }
            for (key, value) in names { json.member(key, value) }
            place.write(&json)
        }
        if adminListener.json {
            shell.out(String(decoding: answer.serialized(), as: UTF8.self))
        } else {
            let now = shell.world.now()
            let span = RegistrationLines.Span(
                since: since.flatMap { TimeWord.read($0, at: now) } ?? .distantPast,
                until: until.flatMap { TimeWord.read($0, at: now) } ?? .distantFuture, last: last ?? .max)
            RegistrationLines.all(answer, span, byCode: code != nil).forEach(shell.out)
        }
        return answer["registrations"]?.array?.isEmpty == false ? .done : .failed
    }
}

/// A time as a person types it.
enum TimeWord {
    /// Minutes, hours or days before `now`: `90m`, `36h`, `3d`; or a day or a minute in UTC: `2026-11-27`,
    /// `2026-11-27T09:00`.
    ///
    /// - Returns: `nil` for anything else.
    static func read(_ text: String, at now: UnixTime) -> UnixTime? {
        let units: [Character: Int64] = ["m": 60, "h": 3_600, "d": 86_400]
        if let last = text.last, let unit = units[last] {
            return number(text.dropLast(), 1...6).map { now - .seconds($0 * unit) }
        }
        let numbers = text.split { "-T:".contains($0) }.compactMap { Int($0) }
        guard [3, 5].contains(numbers.count), (1970...9999).contains(numbers[0]) else { return nil }
        var parts = tm()
        parts.tm_year = Int32(clamping: numbers[0] - 1900)
        parts.tm_mon = Int32(clamping: numbers[1] - 1)
        parts.tm_mday = Int32(clamping: numbers[2])
        if numbers.count == 5 {
            (parts.tm_hour, parts.tm_min) = (Int32(clamping: numbers[3]), Int32(clamping: numbers[4]))
        }
        let time = UnixTime(seconds: Int64(timegm(&parts)))
        // The system also takes 31 February: a time is what is written as it was typed.
        let typed = timestamp(time).prefix(numbers.count == 5 ? 16 : 10)
        return typed == text ? time : nil
    }

    private static func number(_ text: Substring, _ digits: ClosedRange<Int>) -> Int64? {
        guard digits.contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return Int64(text)
    }
}

/// What ``HistoryDesk`` tells of registrations, in lines for a person.
enum RegistrationLines {
    /// Which counts are told.
    struct Span {
        let since: UnixTime
        let until: UnixTime
        /// Of each registration, the latest.
        let last: Int

        func holds(_ cell: JSONValue) -> Bool {
            (cell["until"]?.int64 ?? 0) > since.milliseconds
                && (cell["from"]?.int64 ?? 0) < until.milliseconds
        }
    }

    /// - Parameter byCode: whether it was asked by the code that an app shows.
    static func all(_ answer: JSONValue, _ span: Span, byCode: Bool) -> [String] {
        let registrations = answer["registrations"]?.array ?? []
        var lines = registrations.flatMap { standing($0) + pushes($0, answer, span) }
        if registrations.isEmpty {
            lines.append(
                "unknown        no such registration: it was never made, was forgotten, or has ended; "
                    + "its history went with it")
            lines.append(
                "what next      "
                    + (byCode
                        ? "a code is good for 72 hours: ask for the one that the app shows now"
                        : "open the app, which registers it, and ask again; if it is unknown still, the app "
                            + "does not reach this relay"))
        }
        if answer["uncounted_since"]?.int64 != nil {
            lines.append(
                "incomplete     from \(PushWay.time(answer["uncounted_since"])) to "
                    + "\(PushWay.time(answer["uncounted_until"])) not all pushes were counted: "
                    + "there were too many")
        }
        if answer["more"]?.bool == true { lines.append("more           there are others; name one instance") }
        if answer["whole"]?.bool == false {
            lines.append("unfinished     not all registrations were looked at in time; name one instance")
        }
        return lines
    }

    private static func standing(_ registration: JSONValue) -> [String] {
        let id = registration["registration"]?.string ?? "?"
        let instance = registration["instance"]?.string ?? "?"
        let head = "registration   \(id) of \(instance)"
        func time(_ name: String) -> String { PushWay.time(registration[name]) }
        switch registration["state"]?.string {
        case "live"?:
            return ["\(head) is live, last registered \(time("registered"))"]
        case "expired"?:
            return [
                "\(head) has ended: its push service refuses it since \(time("expired"))",
                "comes back     with a registration that the phone makes after that; its history is gone"
            ]
        default: return ["\(head) has ended"]
        }
    }

    private static func pushes(_ registration: JSONValue, _ answer: JSONValue, _ span: Span) -> [String] {
        guard registration["state"]?.string == "live" else { return [] }
        guard answer["history"]?.string == "on" else {
            return ["history        is turned off in the configuration"]
        }
        let pushes = registration["pushes"]?.array ?? []
        guard !pushes.isEmpty else {
            return ["history        no push to it has met an answer within the last week"]
        }
        let told = pushes.filter(span.holds).suffix(span.last)
        return told.isEmpty ? ["history        no push to it has met an answer in that time"] : told.map(line)
    }

    private static func line(_ cell: JSONValue) -> String {
        let count = cell["count"]?.int64 ?? 0
        let reason = cell["reason"]?.string.map { " (\($0))" } ?? ""
        let span = Int64(3_600_000)
        let from = cell["from"]?.int64 ?? 0
        let isHour = (cell["until"]?.int64 ?? 0) <= from + span
        // 2026-11-27T09:00:00.000Z
        let start = PushWay.time(cell["from"])
        let day = start.prefix(10)
        let when = isHour ? "\(day) \(start.dropFirst(11).prefix(5))" : "\(day), the day "
        let last = PushWay.time(cell["last"])
        return "\(when)   \(count) \(words(cell["event"]?.string))\(reason), the last \(last)"
    }

    private static func words(_ event: String?) -> String {
        switch event {
        case "delivered"?: "handed to the push service"
        case "delayed"?: "tries put off"
        case "refused"?: "refused for good"
        case "expired"?: "grew too old"
        case "dropped"?: "given up, and may have arrived"
        case "replaced"?: "ended with a former address"
        default: "met something that this program does not know"
        }
    }
}
