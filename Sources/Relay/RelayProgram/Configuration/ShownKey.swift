/// What a list shows of a key.
enum ShownKey: Sendable, Equatable {
    /// As apps and devices write it.
    case publicKey(String)
    /// A key that has no public half, by the number that its file gives it.
    case number(UInt32)
    /// So many keys of which nothing may be shown.
    case secrets(Int)
}
