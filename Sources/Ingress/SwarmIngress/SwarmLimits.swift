/// Every bound of the link to the swarm, each with its reason.
package enum SwarmLimits {
    /// What both sides of a connection take as one message (deployed nodes and servers).
    package static let messageBytes = 10 << 20
}
