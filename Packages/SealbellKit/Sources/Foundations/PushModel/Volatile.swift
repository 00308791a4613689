/// A notification that must never reach a disk.
///
/// It is not a `Push`: nothing that writes to a store takes it. It names no registration, origin or mark,
/// because those would be stored.
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

/// Something a role saw so many times.
package struct NoteCount: Sendable, Hashable {
    package let code: NoteCode
    package let count: Int

    package init(_ code: NoteCode, _ count: Int = 1) {
        self.code = code
        self.count = count
    }
}

/// What a role of a protocol that forbids keeping makes of one inbound. There is no reply and no change,
/// because nothing is kept.
package struct VolatileVerdict<Held: Sendable>: RoleVerdict {
    package static var custody: Custody { .volatile }

    package var pushes: [VolatilePush]
    package var notes: [NoteCount]
    /// What the role gets back when there is room for none of the pushes.
    package var held: Held

    package init(pushes: [VolatilePush] = [], notes: [NoteCount] = [], held: Held) {
        self.pushes = pushes
        self.notes = notes
        self.held = held
    }
}

extension VolatileVerdict<Void> {
    package init(pushes: [VolatilePush] = [], notes: [NoteCount] = []) {
        self.init(pushes: pushes, notes: notes, held: ())
    }
}
