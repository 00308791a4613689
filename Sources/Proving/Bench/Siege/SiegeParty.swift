/// A protocol's part of a siege beside the load's first protocol: instances of its own at the same relay,
/// what is done to them, and those who behave well there.
protocol SiegeParty: Sendable {
    /// Starts what the instances need outside the relay.
    init(_ setting: ChaosSetting) async throws

    var instances: [StagedInstance] { get }

    /// In the order of the report.
    var attacks: [SiegeAttack] { get }

    func stop() async
}
