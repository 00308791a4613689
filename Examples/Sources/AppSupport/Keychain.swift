import SealbellKit
import Synchronization

/// In place of the system's keychain: it keeps one text, as long as the program runs.
public final class Keychain: Sendable {
    private let kept = Mutex<Secret?>(nil)

    public init() {}

    /// To be given to a ``Phone``.
    public var save: @Sendable (Secret) -> Void { { new in self.kept.withLock { $0 = new } } }

    public func load() -> Secret? { kept.withLock { $0 } }
}
