package import SealbellKit

/// What became of a notification for one person.
package struct StatusDispatch: Sendable, Hashable {
    package enum Outcome: Sendable, Hashable {
        /// Servers took it for this many installations, and gave up on others.
        case taken(installations: Int, failed: Int)
        /// Nobody told a token that lets this sender in, or the person has no registration.
        case noToken
    }

    /// What went wrong first. The raw values are frozen: they are ``Settled/detail``.
    package enum Fault: String, Sendable, Hashable, CaseIterable {
        /// No server and no contact code told a token that lets this sender in.
        case noToken
        /// The app's node has published nothing.
        case unpublished
        /// Servers have not answered.
        case noAnswer
        /// Servers say that the token is another by now.
        case wrongToken
        /// Servers have forgotten the installation.
        case notRegistered
        /// Servers could not push, for reasons of their own.
        case serverFailed
    }

    /// Of ``StatusOriginRoutine/notify(_:to:now:)``.
    package let id: UInt64
    package let outcome: Outcome
    package let fault: Fault?

    package init(id: UInt64, outcome: Outcome, fault: Fault? = nil) {
        (self.id, self.outcome, self.fault) = (id, outcome, fault)
    }

    /// The same in the words of all protocols.
    package var settled: Settled {
        switch outcome {
        case .taken(let installations, let failed):
            Settled(id: id, reached: installations, missed: failed, detail: fault?.rawValue)
        case .noToken: Settled(id: id, reached: 0, missed: 0, detail: fault?.rawValue)
        }
    }
}

/// What the sending client wants done.
package struct OriginWork: Sendable {
    /// What a message is published for.
    package enum Matter: Sendable {
        /// Servers are asked about a person.
        case query(UInt64)
        /// A server is asked to push.
        case request(UInt64)
    }

    /// To be published.
    package var publishing: [(message: WakuMessage, matter: Matter)] = []
    /// Content topics whose history is to be read from the store, the newest message at least. Each message
    /// goes to ``StatusOriginRoutine/receive(_:now:)``, then the topic to
    /// ``StatusOriginRoutine/readHistory(of:)``.
    package var histories: [String] = []
    /// Notifications that are settled.
    package var settled: [StatusDispatch] = []

    package var messages: [WakuMessage] { publishing.map(\.message) }
}
