/// One text of SQL.
struct Statement: Sendable {
    let number: Int
    let text: String
    /// Prepared once on each connection, under its number. Steps of the schema run once and are not.
    let isKept: Bool
    var name: String { "s\(number)" }

    /// - Parameter number: its own among those that are kept.
    init(_ number: Int, _ text: String) {
        self.number = number
        self.text = text
        isKept = true
    }

    init(once text: String) {
        number = -1
        self.text = text
        isKept = false
    }
}
