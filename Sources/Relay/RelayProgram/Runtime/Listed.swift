extension [String] {
    /// As a sentence lists them: `a, b and c`.
    func listed(_ word: String) -> String {
        guard count > 1, let last else { return joined() }
        return dropLast().joined(separator: ", ") + " \(word) \(last)"
    }
}
