/// A notification that must never reach a disk.
///
/// It is no `Push`: nothing that writes takes it. It names no registration, no origin and no mark, for those
/// would be kept.
package struct VolatilePush: Sendable {
    package var message: ProviderMessage
    package var pushClass: PushClass
    /// When it may leave; `nil`: at once. A relay that stops sends it before.
    package var notBefore: UnixTime?
    /// Until when the relay owes it, if the process lives so long.
    package var custodyEnds: UnixTime

    package init(
        message: ProviderMessage, pushClass: PushClass, notBefore: UnixTime? = nil, custodyEnds: UnixTime
    ) {
        self.message = message
        self.pushClass = pushClass
        self.notBefore = notBefore
        self.custodyEnds = custodyEnds
    }
}

/// What a role of a protocol that forbids keeping makes of one inbound. There is no reply and no change: who
/// may keep nothing has nothing to change.
package struct VolatileVerdict: RoleVerdict {
    /// Something the role saw so many times.
    package struct Note: Sendable, Hashable {
        package let code: NoteCode
        package let count: Int

        package init(_ code: NoteCode, _ count: Int = 1) {
            self.code = code
            self.count = count
        }
    }

    package static var custody: Custody { .volatile }

    package var pushes: [VolatilePush]
    package var notes: [Note]
    /// Told when there was room for none of the pushes, so that the role takes the same inbound again.
    package var untaken: (@Sendable () -> Void)?

    package init(
        pushes: [VolatilePush] = [], notes: [Note] = [], untaken: (@Sendable () -> Void)? = nil
    ) {
        self.pushes = pushes
        self.notes = notes
        self.untaken = untaken
    }
}
