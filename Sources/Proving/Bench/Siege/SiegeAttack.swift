/// One thing that is done to a relay's listeners (decision 0052). What speaks a protocol stands with the
/// protocol (``LoadProtocol/attacks``).
struct SiegeAttack: Sendable {
    /// As the report has it, in snake case.
    let name: String
    /// Whether those who come by may find no place.
    let takesEveryPlace: Bool
    /// Goes on until the force's end.
    let make: @Sendable (SiegeForce) async throws -> Void

    init(
        _ name: String, takesEveryPlace: Bool = false,
        make: @escaping @Sendable (SiegeForce) async throws -> Void
    ) {
        self.name = name
        self.takesEveryPlace = takesEveryPlace
        self.make = make
    }

    /// For tables.
    var words: String { String(name.map { $0 == "_" ? " " : $0 }) }

    /// Nothing: what everything else is compared with.
    static let quiet = SiegeAttack("quiet") { _ in }
    /// One client that takes connections.
    static let connections = SiegeAttack("connections_of_one_client") { force in
        try await force.hold { _ in SiegeForce.stranger }
    }
    /// Clients that together take more connections than the process may have descriptors.
    static let descriptors = SiegeAttack("connections_of_a_crowd", takesEveryPlace: true) { force in
        try await force.hold { "127.0.2.\(1 + $0 % SiegePlan.crowdAddresses)" }
    }
}
