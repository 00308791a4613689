/// Where somebody writes to accounts of a simulated network that carries messages itself.
package struct SimulatedPost: Sendable {
    /// The network's name at the control endpoint.
    let name: String
    /// Takes a message in the network's own form, and says once, on any thread, to how many connections it
    /// was told. What it refuses by throwing it says nothing of.
    let take: @Sendable (JSONTree, @escaping @Sendable (_ told: Int) -> Void) throws(SimulatorError) -> Void
}
