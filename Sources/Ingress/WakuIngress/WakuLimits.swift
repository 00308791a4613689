/// Every bound of the link to a Waku node, each with its reason.
package enum WakuLimits {
    /// A page of a store's history: the most that deployed nodes give.
    package static let pageMessages = 100
}
