/// A group of processes that share a store and one kind of work. The text form is a clear column.
package struct GroupName: Sendable, Hashable {
    package let text: String

    /// All processes that serve: what a limit is divided by.
    package static let relays = GroupName(unchecked: "*")

    /// Those that listen for one instance: all receive the same events and divide them.
    package init(listeningFor instance: ConfiguredName) { text = instance.text }

    /// What an engine has written once.
    package init(unchecked text: String) { self.text = text }
}

/// One process of a group, as the engine's clock has it, for machines' clocks differ.
package struct Member: Sendable, Hashable {
    package var owner: OwnerID
    package var group: GroupName
    /// Whether it is the process that asked.
    package var isUs: Bool
    /// How long ago it joined; a process that comes back after its lease has ended joins again.
    package var joinedAgo: Duration
    /// How long it counts as alive from now on; negative: so long ago that ended.
    package var aliveFor: Duration
    /// It left by itself, at the moment when `aliveFor` was zero.
    package var hasLeft: Bool

    package init(
        owner: OwnerID, group: GroupName, isUs: Bool, joinedAgo: Duration, aliveFor: Duration, hasLeft: Bool
    ) {
        self.owner = owner
        self.group = group
        self.isUs = isUs
        self.joinedAgo = joinedAgo
        self.aliveFor = aliveFor
        self.hasLeft = hasLeft
    }

    /// How long a member that has ended is still listed: the others must learn until when it worked, and ask
    /// every few seconds.
    package static let remembered = Duration.seconds(60)
}
