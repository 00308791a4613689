import ArgumentParser
import PushModel
import WireFormats

/// A registration by what an operator has of it, and what became of its pushes.
struct RegistrationOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The registration's realm, with the device's token id or number.", valueName: "id")
    )
    var realm: String?

    @Option(
        help: ArgumentHelp("The device's token id, 12 characters of base64 (servers of 12).", valueName: "id")
    )
    var tokenID: String?

    @Option(
        help: ArgumentHelp(
            "The number that the relay gave the device (servers of 11, and after the specification).",
            valueName: "number"))
    var deviceID: String?

    @OptionGroup var place: InstanceOption

    /// The names that the relay is asked for.
    private var names: [(key: StaticString, value: String)] {
        [("realm", realm?.lowercased()), ("token_id", tokenID), ("device_id", deviceID)]
            .compactMap { key, value in value.map { (key, $0) } }
    }

    var isGiven: Bool { !names.isEmpty }

    func validate() throws {
        let hasDevice = tokenID != nil || deviceID != nil
        guard (realm != nil) == hasDevice, tokenID == nil || deviceID == nil else {
            throw ValidationError("Name a device by --realm, and by --token-id or --device-id.")
        }
        if let realm, UUIDText(realm.lowercased()) == nil {
            throw ValidationError("A realm is named by its UUID.")
        }
    }

    /// - Returns: `.failed` when nothing of that name is registered.
    func tell(_ adminListener: AdminListenerOptions, _ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(HistoryDesk.path, shell) { json in
            for (key, value) in names { json.member(key, value) }
            place.write(&json)
        }
        let registrations = answer["registrations"]?.array ?? []
        if adminListener.json {
            shell.out(String(decoding: answer.serialized(), as: UTF8.self))
        } else {
            RegistrationLines.all(answer).forEach(shell.out)
        }
        return registrations.isEmpty ? .failed : .done
    }
}

/// What ``HistoryDesk`` tells of registrations, in lines for a person.
enum RegistrationLines {
    static func all(_ answer: JSONValue) -> [String] {
        let registrations = answer["registrations"]?.array ?? []
        guard !registrations.isEmpty else {
            return [
                "unknown        no such registration: it was never made, was forgotten, or has ended; "
                    + "its history went with it"
            ]
        }
        var lines = registrations.flatMap { standing($0) + pushes($0, answer) }
        if answer["more"]?.bool == true { lines.append("more           there are others; name one instance") }
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

    private static func pushes(_ registration: JSONValue, _ answer: JSONValue) -> [String] {
        guard registration["state"]?.string == "live" else { return [] }
        guard answer["history"]?.string == "on" else {
            return ["history        is turned off in the configuration"]
        }
        let pushes = registration["pushes"]?.array ?? []
        guard !pushes.isEmpty else {
            return ["history        no push to it has met an answer within the last week"]
        }
        return pushes.map(line)
    }

    private static func line(_ cell: JSONValue) -> String {
        let count = cell["count"]?.int64 ?? 0
        let reason = cell["reason"]?.string.map { " (\($0))" } ?? ""
        let span = Int64(3_600_000)
        let from = cell["from"]?.int64 ?? 0
        let isHour = (cell["until"]?.int64 ?? 0) - from <= span
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
