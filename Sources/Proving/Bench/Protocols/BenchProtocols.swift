/// The protocols that trials and measurements know.
struct BenchProtocols: Sendable {
    /// Those with an origin that asks over HTTP. The first drives the trials that ask in one protocol alone.
    var loads: [any LoadProtocol]
    /// Those that go beside the load of a chaos trial, by rules of their own.
    var companions: [any ChaosCompanion.Type]
    /// Those that are besieged beside the first of the loads.
    var sieges: [any SiegeParty.Type]

    init(
        loads: [any LoadProtocol], companions: [any ChaosCompanion.Type], sieges: [any SiegeParty.Type]
    ) {
        self.loads = loads
        self.companions = companions
        self.sieges = sieges
    }
}
