package import PushModel
package import SealbellKit

/// How an origin prepares and judges the calls that it owes, for ``UplinkProvider``. Any number of calls may
/// use it at once.
package protocol UplinkOffice: Sendable {
    /// Asked right before a call leaves.
    func leave(of message: UplinkMessage) async -> UplinkLeave
    /// Judges an answer, and commits what follows from it before it returns. When a record is deleted, the
    /// calls that were made from it end in the same commit, so that answer and end of the call are one
    /// commit.
    ///
    /// The same call may be answered twice: after a crash, and where an answer was lost. The second time
    /// nothing may follow.
    ///
    /// - Parameter call: the owed call's id, which stays the same over all tries.
    func take(_ answer: CallAnswer, to message: UplinkMessage, of call: PushID) async -> UplinkVerdict
}

/// Whether a call may leave.
package enum UplinkLeave: Sendable {
    /// With these header fields: credentials, which no row keeps. `publicAddressesOnly`: a peer has chosen
    /// the server, and must not lead us into our own network. `server`: if the message names none, the one
    /// that the configuration names now.
    case granted([(name: String, value: String)], publicAddressesOnly: Bool = false, server: String = "")
    /// The reason for the call no longer exists.
    case void
    /// This cannot be decided now, because the store is out.
    case later
}

package enum UplinkVerdict: Sendable, Hashable {
    /// The call has done its work.
    case done
    /// It ends for good without success.
    case refused
    /// Another try, no sooner. `blames`: whether the server asks everybody for time, and not this call alone.
    case again(after: Duration, blames: Bool)
    /// The server refuses our id and key: nothing is sent there until one call has shown that it takes them.
    case callerRefused
    /// What follows could not be committed.
    case uncommitted
}
