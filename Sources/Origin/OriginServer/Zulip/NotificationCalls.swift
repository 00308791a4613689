import PushModel
import Synchronization

/// The calls to the relay that a notification became, as far as this process has owed or made them lately. In
/// memory, like the answers that `sealbell why` shows for them: after a restart neither is known.
final class NotificationCalls: Sendable {
    /// Half of the notifications that are remembered at most; two halves take about 600 KiB.
    private static let half = 2_048

    private struct Halves {
        var newer: [String: [PushID]] = [:]
        var older: [String: [PushID]] = [:]
    }

    private let halves = Mutex(Halves())

    /// - Parameter id: of a notification, which becomes a call for each profile and thousand devices.
    func note(_ call: PushID, of id: String) {
        halves.withLock { halves in
            var calls = halves.newer[id] ?? halves.older[id] ?? []
            if calls.contains(call) { return }
            calls.append(call)
            halves.older[id] = nil
            if halves.newer[id] == nil, halves.newer.count >= Self.half {
                halves.older = halves.newer
                halves.newer = [:]
            }
            halves.newer[id] = calls
        }
    }

    func all(of id: String) -> [PushID] {
        halves.withLock { $0.newer[id] ?? $0.older[id] ?? [] }
    }
}
