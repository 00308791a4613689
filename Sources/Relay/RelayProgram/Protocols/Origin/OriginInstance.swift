import AdminIngress
import Delivery
import HTTPIngress
import OriginServer
import PushModel

/// The origin as it is hosted beside instances, on the same store, lanes and listeners.
struct OriginInstance: HostedInstance {
    let house: OriginHouse

    init(_ house: OriginHouse) { self.house = house }

    var name: ConfiguredName { house.name }
    var publicKeys: [String] { [] }
    var faces: [any HTTPFace] { house.faces }
    var ownLanes: OwnLanes? { house.lanes }

    var troubles: [Alert] { house.troubles.alerts(of: name, house.people) }

    func takeForce() -> [any InstanceService] { [house.clock] }

    func answerWaiting() { house.polls.end() }

    func sweep() async throws(StoreError) -> Bool {
        house.polls.sweep()
        return false
    }
}
