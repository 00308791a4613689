import AtRest
import Primitives
import PushModel
import Synchronization

/// Finds registrations by the support code of their token (decision 0144). There is no index for it: every
/// registration is opened, which takes some seconds for a million.
final class CodeSearch: Sendable {
    /// Registrations of one reading.
    private static let page = 500

    private let store: SealedStore
    private let world: World
    private let isUnderWay = Mutex(false)

    init(_ store: SealedStore, _ world: World) { (self.store, self.world) = (store, world) }

    /// - Returns: what was found, and whether all were looked at within ``DeskLimits/searchSpan``; `nil`
    ///   while another search is under way.
    func find(
        _ code: SupportCode, in spaces: [Space], atMost most: Int
    ) async throws(StoreError) -> (records: [Record], isWhole: Bool)? {
        let begins = isUnderWay.withLock { isUnderWay in
            defer { isUnderWay = true }
            return !isUnderWay
        }
        guard begins else { return nil }
        defer { isUnderWay.withLock { $0 = false } }
        let day = code.day(at: world.now())
        let until = world.instant() + DeskLimits.searchSpan
        var found: [Digest16: Record] = [:]
        for space in spaces {
            var after: UInt64 = 0
            while true {
                guard world.instant() < until, !Task.isCancelled else { return (Array(found.values), false) }
                let page = try await store.page(.space(space), after: after, limit: Self.page)
                // One that was written anew meanwhile comes again.
                for record in page where found.count < most && Self.code(of: record, on: day) == code {
                    found[store.digest(of: record.key)] = record
                }
                guard page.count == Self.page, let last = page.last else { break }
                after = last.revision
            }
        }
        return (Array(found.values), true)
    }

    /// Every protocol names an address by the app's id ‖ 0 ‖ token.
    private static func code(of record: Record, on day: UInt32) -> SupportCode? {
        record.address?.name.reveal { name in
            guard let end = name.firstIndex(of: 0) else { return nil }
            return SupportCode(
                token: Secret(copying: UnsafeRawBufferPointer(rebasing: name[(end + 1)...])), day: day)
        }
    }
}
