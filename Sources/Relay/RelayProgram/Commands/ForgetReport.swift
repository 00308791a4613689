import WireFormats

/// What a call that forgets has answered.
enum ForgetReport {
    /// `3 devices, 1 realms`: every count that the relay gave, in its order.
    static func tell(_ answer: JSONValue, _ adminListener: AdminListenerOptions, _ shell: Shell) -> Int64 {
        let counts = (answer.object?.members ?? []).map { ($0.name, $0.value.int64 ?? 0) }
        if adminListener.json {
            shell.out(String(decoding: answer.serialized(), as: UTF8.self))
        } else {
            shell.out("Forgotten: " + counts.map { "\($0.1) \($0.0)" }.joined(separator: ", ") + ".")
        }
        return counts.reduce(0) { $0 + $1.1 }
    }
}
