import Delivery
import PushModel

/// How push services and devices misbehave in a storm, beside everything else that goes wrong.
extension Stage {
    /// Each misbehaviour of the seed once, and again until the storm ends.
    func misbehave(until end: ContinuousClock.Instant) async {
        repeat {
            for misbehaviour in traits.misbehaviours.each {
                await scheduler.pause(.zero ... .seconds(5))
                await begin(misbehaviour)
            }
        } while scheduler.instant < end && !traits.misbehaviours.isEmpty
    }

    private func begin(_ misbehaviour: Misbehaviour) async {
        ledger.happened("misbehaviour: \(misbehaviour.words.joined())")
        switch misbehaviour {
        case .late:
            // Long enough for the longest back-off of one push.
            service.behave { $0.late = scheduler.random(in: 30...100) }
            await traffic(scheduler.random(in: 3...8), over: .seconds(100))
            service.behave { $0.late = 0 }
        case .slow:
            var mood = traits.mood
            mood.latency = .seconds(1) ... .seconds(scheduler.random(in: 4...8))
            service.turn(mood)
            await traffic(scheduler.random(in: 3...8), over: .seconds(60))
            service.turn(nil)
        case .cuts:
            // Long enough for the fourth time.
            service.behave { $0.cut = scheduler.random(in: 40...85) }
            await traffic(scheduler.random(in: 10...30), over: .seconds(45))
            service.behave { $0.cut = 0 }
        case .strayFaults:
            service.behave { $0.stray = scheduler.random(in: 3...25) }
            await traffic(scheduler.random(in: 5...20), over: .seconds(20))
            service.behave { $0.stray = 0 }
        case .environmentKey:
            let key: Environment = scheduler.chance(80) ? .production : .sandbox
            service.behave { $0.key = key }
            await traffic(scheduler.random(in: 5...20), over: .seconds(30))
            service.behave { $0.key = nil }
        case .pages:
            service.behave { $0.pages = scheduler.random(in: 3...25) }
            await traffic(scheduler.random(in: 5...20), over: .seconds(20))
            service.behave { $0.pages = 0 }
        case .deafness:
            service.deafen()
            await traffic(scheduler.random(in: 5...20), over: .seconds(60))
        case .quotas:
            let device = someDevice
            service.behave { $0.limited = device }
            await withDiscardingTaskGroup { group in
                group.addTask {
                    await peers.notify(
                        scheduler.random(in: 10...40), isUrgent: false, custody: .seconds(86_400),
                        waits: false
                    ) { _ in device }
                }
                group.addTask { await traffic(scheduler.random(in: 1...5), over: .seconds(40)) }
            }
            service.behave { $0.limited = nil }
        case .newTokens: await renewToken(of: someDevice)
        case .departures: await depart(someDevice)
        default: break
        }
    }

    private var someDevice: Int { scheduler.random(in: 0...peers.devices - 1) }

    /// Calls and messages to anybody, for as long as the span.
    private func traffic(_ count: Int, over span: Duration) async {
        await withDiscardingTaskGroup { group in
            group.addTask { await scheduler.pause(span...span) }
            for _ in 0..<count {
                group.addTask {
                    await scheduler.pause(.zero...span)
                    await peers.notify(
                        scheduler.random(in: 1...3), isUrgent: scheduler.chance(30),
                        custody: .seconds(86_400), waits: scheduler.chance(30))
                }
            }
        }
    }

    /// Pushes that nobody takes yet.
    private func notify(_ device: Int, beside body: () async -> Void) async {
        var mood = traits.mood
        mood.busy = 100
        mood.asking = scheduler.chance(50) ? 100 : 0
        service.turn(mood)
        await peers.notify(
            scheduler.random(in: 1...6), isUrgent: false, custody: .seconds(86_400), waits: false
        ) { _ in device }
        await scheduler.pause(.zero ... .seconds(4))
        await body()
        await scheduler.pause(.zero ... .seconds(4))
        service.turn(nil)
    }

    private func renewToken(of device: Int) async {
        await peers.register(device)
        await notify(device) {
            // What is registered goes with the first push to it, until the device has registered anew.
            ledger.forgoes(device)
            _ = service.renewToken(of: device)
            await scheduler.pause(.zero ... .seconds(scheduler.chance(70) ? 1 : 20))
            await peers.register(device)
        }
        await scheduler.pause(.zero ... .seconds(20))
    }

    private func depart(_ device: Int) async {
        await peers.register(device)
        await notify(device) { await peers.unregister(device) }
        await scheduler.pause(.seconds(1) ... .seconds(20))
        if scheduler.chance(50) { await peers.register(device) }
    }
}
