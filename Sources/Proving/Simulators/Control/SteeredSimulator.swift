import PushModel

/// A simulator that the control endpoint reads and controls.
package protocol SteeredSimulator: PushSimulator {
    /// Its name there.
    var name: String { get }
    var counters: SimulatorCounters { get }
    var openConnections: Int { get }
    /// Kept deliveries with a number above `number`, the oldest first.
    func deliveries(after number: Int, limit: Int) -> [Delivery]
    var connectionKnobs: ConnectionKnobs { get }
    func turnConnections(_ change: (inout ConnectionKnobs) -> Void)
    func goAway(_ plan: GoAwayKnob)
    func killConnections()
    /// - Throws: `.knobNotKnown` if connections are of another kind.
    func lapse(_ lapse: ConnectionLapse) throws(SimulatorError)
    /// Sets the service's own knobs.
    ///
    /// - Throws: `.knobNotKnown`; then nothing has been changed.
    func turn(_ order: SteeringOrder) throws(SimulatorError)
    /// Sets one device's registration.
    ///
    /// - Throws: `.knobNotKnown`.
    func register(_ order: SteeringOrder) throws(SimulatorError)
    /// Sets where a key that is on file is valid.
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

/// What to set, as the endpoint received it.
package struct SteeringOrder: Sendable {
    let tree: JSONTree
}
