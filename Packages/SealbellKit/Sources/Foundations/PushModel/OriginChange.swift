/// What came of an operator's change of an origin: a suspension, its end, or a quota.
package enum OriginChange: Sendable, Hashable {
    case done
    /// No origin of that id has signed up.
    case unknown
    /// It has ended its registration itself, which is for good.
    case deactivated
}
