/// One thing that is done to a relay's listeners (decision 0052). What speaks a protocol stands with the
/// protocol (``LoadProtocol/attacks``, ``SiegeParty/attacks``).
struct SiegeAttack: Sendable {
    typealias Deed = @Sendable (SiegeForce) async throws -> Void

    /// Who takes part, from the same moment on.
    struct Sides: Sendable {
        /// Goes on until the force's end.
        var attackers: Deed
        /// Those who behave well, until the force's end; their calls are noted. `nil`: the origin of the
        /// load's first protocol.
        var others: Deed?
    }

    /// As the report has it, in snake case.
    let name: String
    /// Whether those who come by may find no place.
    let takesEveryPlace: Bool
    /// Makes what both sides need, before anything is counted.
    let prepare: @Sendable (SiegeScene) async throws -> Sides

    init(
        _ name: String, takesEveryPlace: Bool = false,
        prepare: @escaping @Sendable (SiegeScene) async throws -> Sides
    ) {
        self.name = name
        self.takesEveryPlace = takesEveryPlace
        self.prepare = prepare
    }

    /// One that needs nothing before it.
    init(_ name: String, takesEveryPlace: Bool = false, make: @escaping Deed) {
        self.init(name, takesEveryPlace: takesEveryPlace) { (_: SiegeScene) in Sides(attackers: make) }
    }

    /// For tables.
    var words: String { String(name.map { $0 == "_" ? " " : $0 }) }

    /// Nothing: what everything else is compared with.
    static let quiet = SiegeAttack("quiet") { (_: SiegeForce) in }
    /// One client that takes connections.
    static let connections = SiegeAttack("connections_of_one_client") { force in
        try await force.hold { _ in SiegeForce.stranger }
    }
    /// Clients that together take more connections than the process may have descriptors.
    static let descriptors = SiegeAttack("connections_of_a_crowd", takesEveryPlace: true) { force in
        try await force.hold { "127.0.2.\(1 + $0 % SiegePlan.crowdAddresses)" }
    }
}
