import AdminIngress
import PushModel
import WireFormats

/// What ``WhyDesk`` tells of one push, in lines for a person.
enum PushWay {
    private static func answers(_ way: JSONValue) -> [JSONValue] { way["answers"]?.array ?? [] }

    private static func owed(_ way: JSONValue) -> JSONValue? {
        way["owed"].flatMap { $0 == .null ? nil : $0 }
    }

    /// Whether the process knows anything of the push.
    static func isKnown(_ way: JSONValue) -> Bool { !answers(way).isEmpty || owed(way) != nil }

    /// The way of one push, a line for each thing known of it.
    static func lines(_ way: JSONValue) -> [String] {
        let (answers, owed) = (answers(way), owed(way))
        var lines: [String] = []
        if !answers.isEmpty || owed != nil { lines.append("accepted       \(time(way["accepted_at"]))") }
        for (answer, more) in folded(answers) {
            if more > 0 {
                let tries = counted(more, "more try", "more tries")
                lines.append("               \(tries) that ended alike, the last of them:")
            }
            let words = [
                "answered", time(answer["answered_at"]), answer["lane"]?.string ?? "",
                "attempt \(answer["number"]?.int64 ?? 0):", answer["outcome"]?.string ?? "",
                "(\(answer["reason"]?.string ?? "")),", next(answer)
            ]
            lines.append("\(words[0])       " + words[1...].joined(separator: " "))
        }
        if let owed {
            let place = owed["place"]?.string == "store" ? "it waits in the store" : "it is in memory"
            lines.append(
                "owed           by \(owed["lane"]?.string ?? ""), \(owed["class"]?.string ?? ""), "
                    + "\(counted(owed["attempts"]?.int64 ?? 0, "attempt")) counted, \(place), "
                    + "not sent before \(time(owed["not_before"])), until \(time(owed["custody_ends"]))")
        } else if answers.last?["next"]?.string == "ended" {
            lines.append("ended          nothing is owed any more")
        }
        if !isKnown(way) {
            lines.append(
                "unknown        it is not owed, and no answer for it is remembered: it ended before what is "
                    + "remembered, grew too old unsent, or was another relay's")
            lines.append(
                "what next      sealbell why --token FILE, or --code with what the app shows, tells what "
                    + "became of a device's pushes within the last week")
        }
        return lines
    }

    /// Of tries in a row that ended alike the first and the last, the last with the number of those between:
    /// an outage has twenty-five a minute.
    private static func folded(_ answers: [JSONValue]) -> [(answer: JSONValue, more: Int)] {
        func isAlike(_ one: JSONValue, _ other: JSONValue) -> Bool {
            ["lane", "outcome", "reason", "next"].allSatisfy { one[$0] == other[$0] }
        }
        var rows: [(answer: JSONValue, more: Int)] = []
        var alike = 0
        for (place, answer) in answers.enumerated() {
            alike = place > 0 && isAlike(answers[place - 1], answer) ? alike + 1 : 0
            if alike > 1 { rows.removeLast() }
            rows.append((answer, max(0, alike - 1)))
        }
        return rows
    }

    private static func next(_ answer: JSONValue) -> String {
        switch answer["next"]?.string {
        case "again"?: "again at \(time(answer["not_before"])) or later"
        case "waits"?: "waits until the lane's credential works"
        case "elsewhere"?: "goes on in the other environment"
        default: "ended"
        }
    }

    /// How far back the process remembers.
    static func remembered(_ way: JSONValue) -> [String] {
        var lines: [String] = []
        lines.append("remembered     answers since the relay's start at \(time(way["running_since"]))")
        if let since = way["faults_since"], since != .null {
            lines.append("               of those that were no acceptance, the ones since \(time(since))")
        }
        if let since = way["acceptances_since"], since != .null {
            lines.append("               of acceptances, the ones since \(time(since))")
        }
        return lines
    }

    static func time(_ value: JSONValue?) -> String {
        value?.int64.map { timestamp(UnixTime(milliseconds: $0)) } ?? "?"
    }
}
