extension BenchProtocols {
    /// What `sealbell-bench` knows. This list and the folder of each protocol beside it are the only places
    /// of the benches that name a protocol.
    static let standard = BenchProtocols(
        loads: [ZulipLoad(), NextcloudLoad()],
        companions: [ChaosMarmot.self, ChaosSession.self, ChaosStatus.self],
        sieges: [NextcloudSiege.self, SessionSiege.self, StatusSiege.self])
}
