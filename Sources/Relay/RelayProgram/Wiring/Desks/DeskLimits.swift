/// Bounds of an operator's calls and of the commands that make them.
enum DeskLimits {
    /// A device token, in bytes: as many as the protocols that take the longest ones register (4,096 of
    /// Google's), so that whatever is registered can be named. As JSON it may take twice as many, which fit a
    /// call's body.
    static let addressBytes = 4_096
    /// How long one search for a support code may take: shorter than a command waits for its answer. A
    /// million registrations take some seconds.
    static let searchSpan = Duration.seconds(20)
    /// What editors and terminals add around a token.
    static let spaceBytes = 64
}
