/// The protocols that trials and measurements know.
struct BenchProtocols: Sendable {
    /// Those with an origin that asks over HTTP. The first drives the trials that ask in one protocol alone.
    var loads: [any LoadProtocol]
    /// Those that go beside the load of a chaos trial, by rules of their own.
    var companions: [any ChaosCompanion.Type]

    init(loads: [any LoadProtocol], companions: [any ChaosCompanion.Type]) {
        self.loads = loads
        self.companions = companions
    }
}
