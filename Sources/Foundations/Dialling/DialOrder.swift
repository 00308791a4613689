package import PushModel

/// The order in which the addresses of a name are tried (RFC 8305 §4).
package enum DialOrder {
    /// Families in alternation, so that one family that is dead as a whole costs one attempt and not all.
    ///
    /// Within a family the order stays as it is. The first family is that of the preferred address, or of the
    /// first address: the system has sorted addresses by reachability (RFC 6724).
    ///
    /// - Parameters:
    ///   - found: as the resolver gave them; one that comes twice is tried once.
    ///   - preferred: what worked last time; it is the first if it is still among them.
    ///   - limit: of addresses that are tried at all.
    package static func order(_ found: [IPAddress], preferred: IPAddress?, limit: Int) -> [IPAddress] {
        var seen: Set<IPAddress> = []
        var unique = found.filter { seen.insert($0).inserted }
        if let preferred, let at = unique.firstIndex(of: preferred) { unique.swapAt(0, at) }
        guard let first = preferred ?? unique.first else { return [] }
        let leading = unique.filter { $0.isV4 == first.isV4 }
        let others = unique.filter { $0.isV4 != first.isV4 }
        var order: [IPAddress] = []
        for index in 0..<max(leading.count, others.count) {
            if index < leading.count { order.append(leading[index]) }
            if index < others.count { order.append(others[index]) }
        }
        return Array(order.prefix(limit))
    }
}

extension IPAddress {
    package var isV4: Bool { v4 != nil }
    /// fe80::/10, whose addresses are good on one link alone (RFC 4291 §2.5.6).
    package var isLinkLocal: Bool { high >> 54 == 0xFE80 >> 6 }
}
