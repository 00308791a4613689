import PushModel

/// What the relay says of one notice of a storage node: nothing, but whether another may bring it again. What
/// is wrong is counted and no more.
package struct NoticeConversation: Sendable {
    private let relay: SessionRelay

    package init(with relay: SessionRelay) { self.relay = relay }

    /// What keeps a notice in memory beside its data.
    private static let noticeBytes = 512

    /// What the notice keeps in memory while it waits.
    package func bytes(of notice: StorageNotice) -> Int { Self.noticeBytes + notice.dataCount }

    /// Behind which revision the account's rows are to be read next, when those before were: each round is of
    /// later rows than the one before. `nil`: none is left.
    package func rest(after reply: SessionReply) -> UInt64? {
        if case .taken(let restAfter) = reply { restAfter } else { nil }
    }

    /// It was refused: until it is in custody, another node's report of it is no repeat. A store that fails
    /// between two rounds is asked for all of the rows again, because what stands is known by its marks.
    ///
    /// - Returns: whether it may be taken again.
    package func refused(_ notice: StorageNotice, _ error: SessionError) -> Bool {
        relay.release(notice)
        return error.isOverloaded
    }
}
