import PushModel
import PushTesting
import Testing

@Suite("Work with an end", .timeLimit(.minutes(30)))
struct UntilEndTests {
    @Test("What is found in time counts, and nobody sleeps on")
    func found() async {
        let clock = ManualClock()
        let world = clock.world(seed: 1)
        #expect(await world.untilEnd(world.instant() + .seconds(1)) { 7 } == 7)
        #expect(clock.sleeping == 0)
    }

    @Test("At the end there is nothing, and the work was cancelled and awaited")
    func late() async {
        let clock = ManualClock()
        let world = clock.world(seed: 1)
        let (bell, ended) = (Bell(), AwaitedCount())
        async let found = world.untilEnd(world.instant() + .seconds(1)) {
            await bell.wait()
            ended.add()
            return 7
        }
        await clock.sleepers(atLeast: 1)
        clock.advance(by: .seconds(1))
        #expect(await found == nil)
        #expect(ended.count == 1)
    }
}
