import PushModel
import PushTesting
import Testing

@Suite("What runs beside a test", .timeLimit(.minutes(30)))
struct BesideTests {
    private struct Fault: Error, Equatable { let number: Int }

    @Test("It is stopped and awaited, and what it throws is thrown")
    func ends() async {
        let (bell, trace) = (Bell(), Trace())
        await #expect(throws: Fault(number: 1)) {
            try await beside(
                {
                    await bell.wait()
                    trace.add("ended")
                    throw Fault(number: 1)
                }, stop: bell.ring, clean: { trace.add("cleaned") }
            ) { trace.add("body") }
        }
        #expect(trace.text == ["body", "ended", "cleaned"])
    }

    @Test("What the body throws comes first; without a word for stopping, the task is cancelled")
    func fails() async {
        let bell = Bell()
        await #expect(throws: Fault(number: 2)) {
            try await beside({
                await bell.wait()
                throw Fault(number: 1)
            }) { throw Fault(number: 2) }
        }
    }
}
