import AdminIngress
import WireFormats

extension AdminListenerOptions {
    /// Has the relay forget, and says how much: `3 devices, 1 realm`, every count that it gave, in its
    /// order.
    ///
    /// - Returns: how many records in all.
    @discardableResult
    func forget(
        _ path: String, _ shell: Shell, _ write: @escaping (inout JSONWriter) -> Void
    ) async throws(CommandFailure) -> Int64 {
        let answer = try await ask(path, shell, write)
        let counts: [(name: String, count: Int64)] = (answer.object?.members ?? []).map {
            (name: $0.name, count: $0.value.int64 ?? 0)
        }
        show(answer, shell) { _ in
            let words = counts.map { counted($0.count, String($0.name.dropLast()), $0.name) }
            return ["Forgotten: " + words.joined(separator: ", ") + "."]
        }
        return counts.reduce(0) { $0 + $1.count }
    }
}
