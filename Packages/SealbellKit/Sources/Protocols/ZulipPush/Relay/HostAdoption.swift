package import PushModel

extension ZulipServers {
    /// Hosts read in one page, each written on its own.
    private static let adoptedPerPage = 256

    /// Brings hosts of a store from before names were looked at into their present form: each under its one
    /// spelling, and owned by its name. Asked for at each start; where nothing is to be done it reads alone.
    ///
    /// - Returns: how many were written anew. One whose spelling another server has stays as it is.
    @discardableResult
    package func adoptHosts() async throws(StoreError) -> Int {
        var count = 0
        var after: UInt64 = 0
        // Ends: the revisions rise, and what is written anew has an owner when it comes again.
        while true {
            let hosts = try await registry.page(
                .space(keys.hostSpace), after: after, limit: Self.adoptedPerPage)
            for host in hosts where host.owner == nil {
                guard try await adopt(host) else { continue }
                count += 1
            }
            guard let last = hosts.last else { return count }
            after = last.revision
        }
    }

    private func adopt(_ host: Record) async throws(StoreError) -> Bool {
        let spelled = host.key.name.reveal { Array($0) }
        guard let name = ZulipHostname(spelled) else { return false }
        var record = host
        record.key = keys.host(name)
        record.owner = keys.name(name)
        let isSpelledSo = Array(name.text.utf8) == spelled
        let changes: [PushModel.Change] =
            isSpelledSo
            ? [.put(record, if: .revision(host.revision))]
            : [.put(record, if: .absent), .delete(host.key, if: .revision(host.revision))]
        return try await registry.apply(changes) == .committed
    }
}
