/// How a server names a device on the wire: by its token's hash in v12, and by the number that the relay gave
/// in v11 and in the specification's own form (§14.1).
package enum DeviceName: Sendable, Hashable {
    case token(TokenID)
    /// What the relay gives is 1 to 2⁶³ − 1; a server may write any signed 64 bits.
    case number(Int64)
}
