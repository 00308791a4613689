import CWiping
import PushModel
import ServiceLifecycle

/// Gives memory back to the system that the start needed once, or that an attack or a busy hour has left free
/// in the heap.
///
/// Large blocks go back at once (`sealbell_heap_bound`). Small ones, of connections and requests, lie between
/// others in the allocator's arenas and stay; so the heap is trimmed when resident memory, but for pages of
/// files, has grown and grows no more.
struct HeapKeeper: Service {
    /// How often resident memory is looked at.
    static let pause = Duration.seconds(10)

    let world: World
    var resident: @Sendable () -> Int = { ProcessMemory.anonymous() }
    var trim: @Sendable () -> Void = { sealbell_heap_trim() }
    var unmapStart: @Sendable () -> Void = { ProcessMemory.unmapStart() }

    func run() async throws {
        // The listeners stand: whatever read the configuration, migrated the store and opened keys has done
        // so.
        unmapStart()
        await cancelWhenGracefulShutdown {
            var watch = TrimPolicy(resident())
            while true {
                // The sleep ends early only by cancellation, which ends the looks.
                do { try await world.sleep(world.instant() + Self.pause) } catch { return }
                guard watch.look(resident()) else { continue }
                trim()
                watch.trimmed(resident())
            }
        }
    }
}

/// When a trim is worth its cost: a state machine without clock or heap.
struct TrimPolicy {
    /// Growth that is worth a trim. If memory cannot be given back, the next try waits until it has grown by
    /// as much again.
    static let growthBytes = 16 << 20

    /// The least since the last trim.
    private var low: Int
    private var last: Int

    init(_ resident: Int) { (low, last) = (resident, resident) }

    /// - Returns: whether to trim now: memory has grown, and it grows no more.
    mutating func look(_ resident: Int) -> Bool {
        let isCalm = resident <= last + Self.growthBytes / 16
        last = resident
        low = min(low, resident)
        return isCalm && resident >= low + Self.growthBytes
    }

    mutating func trimmed(_ resident: Int) { (low, last) = (resident, resident) }
}
