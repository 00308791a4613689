import PushModel
import Synchronization

/// What a lane does at the core's tick.
extension Lane {
    func tick(seconds: Double) {
        let moment = moment
        let isLeased = core.lease.grant() != nil
        let isCongested = core.settler.holdsBack
        let after = change { state in
            let actions = state.tick(
                at: moment, seconds: seconds, isLeased: isLeased, isCongested: isCongested)
            state.hasChanged = false
            return ((inMemory: state.inMemory, parked: state.parked, isStopping: state.isStopping), actions)
        }
        meter.backlog(inMemory: after.inMemory, parked: after.parked)
        senders.endUnneeded(at: moment.instant)
        if after.isStopping { drained.ring() }
    }

    var needsTick: Bool { state.withLock(\.needsTick) || !senders.isAtRest }
}
