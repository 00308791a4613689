import PushTesting
import Testing

extension Trait where Self == WaitsSpeak {
    /// From now on each wait of this process that is in vain is an issue of the test that waited.
    static var waitsSpeak: Self {
        Patience.tell { wait in
            Issue.record(
                wait, "\(wait)",
                sourceLocation: SourceLocation(
                    fileID: wait.file, filePath: wait.file, line: wait.line, column: 1))
        }
        return WaitsSpeak()
    }
}

/// All tests of all targets are one program, which evaluates every suite's traits before the first test runs:
/// so this one, which does nothing by itself, speaks for all.
struct WaitsSpeak: SuiteTrait {}

@Suite("How tests wait", .waitsSpeak, .timeLimit(.minutes(30)))
struct WaitingTests {
    @Test("A signal asks at once, and again behind each change, and no oftener")
    func asks() async {
        let signal = Signal()
        let (asked, fits) = (Noted(0), Noted(false))
        @Sendable func question() -> Bool {
            asked.change { $0 += 1 }
            return fits.value
        }
        fits.set(true)
        #expect(await signal.until(question))
        #expect(asked.value == 1)
        fits.set(false)
        async let answer = signal.until(question)
        await asked.until { $0 == 2 }
        signal.changed()
        await asked.until { $0 == 3 }
        fits.set(true)
        signal.changed()
        #expect(await answer)
        #expect(asked.value == 4)
    }

    @Test("A change between the question and the wait is not missed")
    func noGap() async {
        let signal = Signal()
        var asked = 0
        let answer = await signal.until {
            asked += 1
            // As another task may do it at the worst moment.
            if asked < 100 { signal.changed() }
            return asked == 100
        }
        #expect(answer && asked == 100)
    }

    @Test("Who is cancelled is told so, waiting or not, and takes nobody along")
    func cancelled() async {
        let (signal, waits) = (Signal(), AwaitedCount())
        let fits = Noted(false)
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                await signal.until {
                    waits.add()
                    return false
                }
            }
            await waits.wait(for: 1)
            group.cancelAll()
            #expect(await group.next() == false)
        }
        async let other = signal.until { fits.value }
        fits.set(true)
        signal.changed()
        #expect(await other)
    }

    @Test("Many tasks change a value in single steps, and a watch counts them all")
    func many() async {
        let (sum, watch) = (Noted(0), AwaitedCount())
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await watch.wait(for: 1000) }
            for _ in 0..<1000 {
                group.addTask {
                    sum.change { $0 += 1 }
                    watch.add()
                }
            }
        }
        #expect(sum.value == 1000 && watch.count == 1000)
    }

    @Test("What never answers ends when it is cancelled, and not before")
    func never() async {
        let ended = Noted(false)
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                await untilCancelled()
                ended.set(true)
            }
            for _ in 0..<100 { await Task.yield() }
            #expect(!ended.value)
            group.cancelAll()
        }
        #expect(ended.value)
    }

    @Test("A look outside is given up at its end, and at once when it is no longer wanted")
    func outside() async {
        var looks = 0
        let came = await watchOutside(every: .zero) {
            looks += 1
            return looks == 3
        }
        #expect(came && looks == 3)
        #expect(await !watchOutside(for: .zero) { false })
        #expect(await watchOutside(for: .zero) { true }, "even then it looks once")
        await withTaskGroup(of: Bool.self) { group in
            group.addTask { await watchOutside(for: .seconds(1000), every: .seconds(1000)) { false } }
            group.cancelAll()
            #expect(await group.next() == false)
        }
    }

    @Test("What never comes ends the wait by name: where it can be thrown, and where it cannot")
    func inVain() async throws {
        @Sendable func isNamed(_ issue: Issue, _ what: String) -> Bool {
            guard let wait = issue.error as? NeverCame else { return false }
            return wait.what.contains(what) && wait.file.hasSuffix("WaitingTests.swift") && wait.line > 0
        }
        await withKnownIssue {
            #expect(await !Signal().until(for: "a bell", looks: 0) { false })
        } matching: {
            isNamed($0, "a bell")
        }
        await withKnownIssue {
            await AwaitedCount().wait(for: 3, "a count", looks: 0)
        } matching: {
            isNamed($0, "a count of 3, now 0")
        }
        await withKnownIssue {
            await ManualClock().sleepers(atLeast: 2, looks: 0)
        } matching: {
            isNamed($0, "sleeper 2")
        }
        let (stream, inlet) = AsyncStream.makeStream(of: Int.self)
        inlet.yield(1)
        inlet.yield(2)
        #expect(try await stream.next("an even number") { $0.isMultiple(of: 2) } == 2)
        let never = await #expect(throws: NeverCame.self) { try await stream.next("three", looks: 0) }
        #expect(never?.what == "three" && never?.ending == .inVain)
        let late = await #expect(throws: NeverCame.self) {
            try await bounded("an answer", looks: 0) { await untilCancelled() }
        }
        #expect(late?.description.contains("an answer did not come") == true)
        await #expect(throws: NeverCame.self) { try await asked(for: "a yes", looks: 0) { false } }
        let (ended, end) = AsyncStream.makeStream(of: Int.self)
        end.finish()
        let over = await #expect(throws: NeverCame.self) { try await ended.next("one") }
        #expect(over?.ending == .ended)
    }

    @Test("Faults of what is waited for come through as they are")
    func faults() async {
        struct Fault: Error {}
        await #expect(throws: Fault.self) { try await bounded("an answer") { throw Fault() } }
        await #expect(throws: Fault.self) { try await asked(for: "a yes") { throw Fault() } }
    }
}
