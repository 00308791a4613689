import PushModel
import Synchronization

/// What the lanes of one credential (a team key, a service account) know of each other: how often it has
/// proved good.
///
/// A fault in one lane says nothing about another lane, which finds out by its own answers. But an acceptance
/// in any of them shows that the credential is good, and that such a fault was a stray one (decision 0079).
/// Environments are told apart, because a key may be good for one alone.
package final class Credential: Sendable {
    private let production = Atomic<Int>(0)
    private let sandbox = Atomic<Int>(0)
    package init() {}

    /// The service gave an answer that it gives only to a good credential.
    func proved(in environment: Environment) {
        switch environment {
        case .production: production.wrappingAdd(1, ordering: .relaxed)
        case .sandbox: sandbox.wrappingAdd(1, ordering: .relaxed)
        }
    }

    /// The number of such answers so far: the same number twice means that none came in between.
    func proofs(in environment: Environment) -> Int {
        switch environment {
        case .production: production.load(ordering: .relaxed)
        case .sandbox: sandbox.load(ordering: .relaxed)
        }
    }
}
