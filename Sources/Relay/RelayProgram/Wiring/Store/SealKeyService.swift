import AtRest
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import PushModel
import ServiceLifecycle
import Synchronization

/// Looks every few seconds whether the file of the storage keys has changed, takes new keys over, and goes on
/// with a rotation that is under way. No reload and no restart is needed.
final class SealKeyService: Service {
    /// What tells that a file is another one than before.
    private struct Stamp: Hashable {
        var device: UInt64
        var node: UInt64
        var seconds: Int
        var nanoseconds: Int

        init?(_ path: String) {
            var facts = stat()
            guard stat(path, &facts) == 0 else { return nil }
            device = UInt64(facts.st_dev)
            node = UInt64(facts.st_ino)
            #if canImport(Darwin)
            let changed = facts.st_ctimespec
            #else
            let changed = facts.st_ctim
            #endif
            seconds = Int(changed.tv_sec)
            nanoseconds = Int(changed.tv_nsec)
        }
    }

    let rotation: SealKeyRotation
    private let file: String
    private let world: World
    private let journal: Journal
    private let refused = Mutex(false)

    init(_ rotation: SealKeyRotation, file: String, _ world: World, _ journal: Journal) {
        self.rotation = rotation
        self.file = file
        self.world = world
        self.journal = journal
    }

    /// True while the file holds keys that do not fit the store: the relay goes on with those of before.
    var isRefused: Bool { refused.withLock { $0 } }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var seen: Stamp?
            while !Task.isCancelled {
                seen = await self.take(seen)
                do throws(StoreError) { try await self.rotation.step() } catch {
                    self.journal.note(
                        "storage keys not rotated", [.code: ErrorCode(error)], level: .warning)
                }
                let next = self.world.instant() + self.rotation.limits.every
                do { try await self.world.sleep(next) } catch { break }
            }
        }
        // What stays behind is taken away by the next relay that looks.
        try? await rotation.farewell()
    }

    /// Takes the file's keys over if it has changed.
    ///
    /// - Returns: what has been looked at; `nil`: look again.
    private func take(_ seen: Stamp?) async -> Stamp? {
        // A file that is away for a moment, or for good, changes nothing: the keys are in memory.
        guard let stamp = Stamp(file), stamp != seen else { return seen }
        do {
            try await rotation.adopt(try KeyFile.read(file))
            refused.withLock { $0 = false }
            return stamp
        } catch let error as KeyFileError {
            refuse(ErrorCode(error))
            return stamp
        } catch let error as StoreError where error.code == .wrongKey {
            refuse(ErrorCode(error))
            return stamp
        } catch {
            // The store does not answer: asked again.
            return nil
        }
    }

    private func refuse(_ code: ErrorCode) {
        refused.withLock { $0 = true }
        journal.note("storage keys not taken over", [.code: code], level: .error)
    }
}
