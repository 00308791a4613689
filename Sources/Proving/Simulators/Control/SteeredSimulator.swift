import PushModel

/// A simulator that the control endpoint reads and turns.
package protocol SteeredSimulator: PushSimulator {
    /// Under which it is found there.
    var name: String { get }
    var counters: SimulatorCounters { get }
    var openConnections: Int { get }
    /// Deliveries with a number above `number` that are still kept, the oldest first.
    func deliveries(after number: Int, limit: Int) -> [Delivery]
    var connectionKnobs: ConnectionKnobs { get }
    func turnConnections(_ change: (inout ConnectionKnobs) -> Void)
    func goAway(_ plan: GoAwayKnob)
    func killConnections()
    /// - Throws: `.knobNotKnown` where connections are of another kind.
    func lapse(_ lapse: ConnectionLapse) throws(SimulatorError)
    /// Turns the service's own knobs.
    ///
    /// - Throws: `.knobNotKnown`; nothing has been changed then.
    func turn(_ order: SteeringOrder) throws(SimulatorError)
    /// Sets what is known of one device.
    ///
    /// - Throws: `.knobNotKnown`.
    func register(_ order: SteeringOrder) throws(SimulatorError)
    /// Sets what a key that is on file is good for.
    ///
    /// - Throws: `.knobNotKnown`, `.keyNotUsable`.
    func bind(_ order: SteeringOrder) throws(SimulatorError)
}

extension SteeredSimulator {
    /// Most services have no keys.
    package func bind(_: SteeringOrder) throws(SimulatorError) { throw SimulatorError(.knobNotKnown) }
}

extension SteeredSimulator {
    package func lapse(_ lapse: ConnectionLapse) throws(SimulatorError) {
        throw SimulatorError(.knobNotKnown)
    }
}

/// What is to be set, as the endpoint was given it.
package struct SteeringOrder: Sendable {
    let tree: JSONTree
}
