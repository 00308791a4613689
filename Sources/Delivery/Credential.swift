import PushModel
import Synchronization

/// What the lanes of one credential (a team key, a service account) know of each other: how often it has
/// proved good.
///
/// A fault that one lane meets says nothing of another: the other finds out by answers of its own. But an
/// acceptance in any of them shows that the credential is good, and that such a fault was a stray one
/// (decision 0079). Environments are told apart, because a key may be good for one alone.
package final class Credential: Sendable {
    private let production = Atomic<Int>(0)
    private let sandbox = Atomic<Int>(0)
    package init() {}

    /// An answer was given that only a good credential is given.
    func proved(in environment: Environment) {
        switch environment {
        case .production: production.wrappingAdd(1, ordering: .relaxed)
        case .sandbox: sandbox.wrappingAdd(1, ordering: .relaxed)
        }
    }

    /// How many such answers there were: the same number twice means that none came between.
    func proofs(in environment: Environment) -> Int {
        switch environment {
        case .production: production.load(ordering: .relaxed)
        case .sandbox: sandbox.load(ordering: .relaxed)
        }
    }
}
