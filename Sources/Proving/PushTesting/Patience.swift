import Synchronization

/// How long a test waits for an expected event before it reports that the event never came.
///
/// Counted in checks, about a second apart, and not in time: a process that gets no processor makes its
/// checks late as well, so that it uses them up only if it was running all the while. Five minutes are longer
/// than everything that a test legitimately waits for.
package enum Patience {
    package static let looks = 300
    package static let pause = Duration.seconds(1)

    /// - Parameter looks: the number of checks; a test of the waits themselves has no minutes to spare.
    /// - Returns: true after this many checks; false if the task was cancelled first.
    package static func ends(_ looks: Int = Patience.looks) async -> Bool {
        for _ in 0..<looks {
            // It fails if the task is cancelled; then somebody else has ended the wait.
            do { try await Task.sleep(for: pause) } catch { return false }
        }
        return true
    }

    /// Hears of failed waits that cannot throw; nobody until a test sets it.
    private static let listening = Mutex(Listening())

    private struct Listening: Sendable {
        var tell: (@Sendable (NeverCame) -> Void)?
    }

    /// From now on tells `listener` of every failed wait that cannot throw.
    package static func tell(_ listener: @escaping @Sendable (NeverCame) -> Void) {
        listening.withLock { $0.tell = listener }
    }

    /// Ends a wait that cannot throw: the test, or else the process, fails by name.
    static func end(_ wait: NeverCame) {
        guard let tell = listening.withLock(\.tell) else { preconditionFailure(wait.description) }
        tell(wait)
    }
}

/// What a test waited for in vain, and where.
package struct NeverCame: Error, CustomStringConvertible {
    package enum Ending: String, Sendable {
        case inVain = "did not come for as long as a test waits"
        case ended = "was still to come when its source ended"
        case cancelled = "was still to come when the test's own time was over"
    }

    package let what: String
    package let ending: Ending
    /// Target and file.
    package let file: String
    package let line: Int

    package var description: String { "\(what) \(ending.rawValue) (waited for at \(file):\(line))" }
}

/// Runs something that must come to an end in a test, such as one read of a socket, and cancels it if it does
/// not.
///
/// - Parameter what: a noun for the message: "an answer of the relay".
/// - Throws: ``NeverCame``, or what `body` throws.
package func bounded<Value: Sendable>(
    _ what: String, looks: Int = Patience.looks, file: String = #fileID, line: Int = #line,
    _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await withThrowingTaskGroup(of: Value?.self) { group in
        group.addTask { try await body() }
        group.addTask {
            _ = await Patience.ends(looks)
            return nil
        }
        defer { group.cancelAll() }
        // The first of the two ends the wait.
        if let value = try await group.next() ?? nil { return value }
        throw NeverCame(
            what: what, ending: Task.isCancelled ? .cancelled : .inVain, file: file, line: line)
    }
}

extension AsyncStream where Element: Sendable {
    /// The next element that matches, in a test that cannot go on without it. Earlier ones are dropped.
    ///
    /// - Parameter what: a noun for the message: "a delivery to the phone".
    /// - Throws: ``NeverCame``.
    package func next(
        _ what: String, looks: Int = Patience.looks, file: String = #fileID, line: Int = #line,
        where fits: @escaping @Sendable (Element) -> Bool = { _ in true }
    ) async throws -> Element {
        let found = try await bounded(what, looks: looks, file: file, line: line) { () -> Element? in
            for await element in self where fits(element) { return element }
            return nil
        }
        guard let found else {
            throw NeverCame(
                what: what, ending: Task.isCancelled ? .cancelled : .ended, file: file, line: line)
        }
        return found
    }
}

/// Asks again and again until the answer is yes: for things that can only be asked, such as a relay's
/// listeners.
///
/// - Parameter what: a noun for the message: "an empty outbox".
/// - Throws: ``NeverCame``, or what `holds` throws.
package func asked(
    for what: String, looks: Int = Patience.looks, file: String = #fileID, line: Int = #line,
    _ holds: () async throws -> Bool
) async throws {
    // Without a pause the questions would take the processor away from what they ask about.
    let came = try await watchOutside(for: Patience.pause * looks, every: .milliseconds(20), holds)
    guard came else {
        throw NeverCame(
            what: what, ending: Task.isCancelled ? .cancelled : .inVain, file: file, line: line)
    }
}
