import PushTesting
import Testing

@Suite("How tests wait", .timeLimit(.minutes(2)))
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
        let (signal, waits) = (Signal(), Watch())
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
        let (sum, watch) = (Noted(0), Watch())
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
}
