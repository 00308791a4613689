import Foundation

/// What each party of one notification saw, for a person or for a program.
struct DemoReport: Encodable, Sendable {
    enum Form: String, Encodable, Sendable { case plaintext, ciphertext, address, nothing }

    struct Sight: Encodable, Sendable {
        /// `device`, `origin`, `relay`, `push service`.
        let party: String
        let form: Form
        /// Shortened for the page.
        let saw: String

        init(_ party: String, _ form: Form, _ saw: String) {
            self.party = party
            self.form = form
            self.saw = saw.count <= 48 ? saw : String(saw.prefix(47)) + "…"
        }
    }

    let conversation: String
    let sights: [Sight]
    /// The device opened what the origin sealed, or was woken where a protocol carries no content.
    let opened: Bool
    /// That, in words.
    let success: String
    /// What went wrong; our own words.
    let fault: String?

    init(
        _ conversation: String, _ sights: [Sight], opened: Bool, fault: String? = nil,
        success: String = "opened by the device"
    ) {
        self.conversation = conversation
        self.sights = sights
        self.opened = opened
        self.fault = fault
        self.success = success
    }

    /// The table, one line each.
    static func table(_ reports: [DemoReport]) -> [String] {
        var rows = [["PROTOCOL", "PARTY", "FORM", "SAW"]]
        for report in reports {
            for (index, sight) in report.sights.enumerated() {
                rows.append([
                    index == 0 ? report.conversation : "", sight.party, sight.form.rawValue, sight.saw
                ])
            }
            rows.append([
                "", "result", "", report.opened ? report.success : report.fault ?? "not opened"
            ])
        }
        let widths = (0..<3).map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            (0..<3).map { row[$0].padding(toLength: widths[$0], withPad: " ", startingAt: 0) }
                .joined(separator: "  ") + "  " + row[3]
        }
    }
}
