/// How far a phone has read what a sandbox's push services accepted.
struct SeenDeliveries: Sendable, Hashable {
    /// Which sandbox: its process and that process's start. Another counts from the beginning.
    private(set) var sandbox = ""
    /// Simulator → number of the last delivery that was read.
    private var numbers: [String: Int] = [:]

    init() {}

    /// What ``text`` wrote; whatever cannot be read is as if nothing had been seen.
    init(_ text: String?) {
        let words = (text ?? "").split(separator: " ").map(String.init)
        sandbox = words.first ?? ""
        for word in words.dropFirst() {
            let parts = word.split(separator: "=")
            guard parts.count == 2, let number = Int(parts[1]), number > 0 else { continue }
            numbers[String(parts[0])] = number
        }
    }

    var text: String {
        ([sandbox] + numbers.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" })
            .joined(separator: " ")
    }

    mutating func begin(_ sandbox: String) {
        if self.sandbox != sandbox { self = SeenDeliveries(sandbox) }
    }

    func number(_ simulator: String) -> Int { numbers[simulator] ?? 0 }
    mutating func see(_ simulator: String, _ number: Int) { numbers[simulator] = number }
}
