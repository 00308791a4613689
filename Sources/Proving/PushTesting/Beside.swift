package import PushModel

/// Runs `body` beside something that runs, ends that, and waits until it has ended.
///
/// - Parameters:
///   - run: a service, as a rule.
///   - stop: makes it end in order, whether `body` throws or not; `nil`: its task is cancelled.
///   - clean: called when it has ended, whatever has thrown.
/// - Throws: what `body` throws; else what `run` throws.
package func beside<Result: Sendable>(
    _ run: @escaping @Sendable () async throws -> Void, stop: (() async -> Void)? = nil,
    clean: () async -> Void = {}, _ body: () async throws -> Result
) async throws -> Result {
    let outcome = await withTaskGroup(of: (any Error)?.self) { tasks -> Swift.Result<Result, any Error> in
        tasks.addTask {
            do { try await run() } catch { return error }
            return nil
        }
        let outcome: Swift.Result<Result, any Error>
        do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
        await stop?()
        // What has failed need not end in order.
        if stop == nil || outcome.isFailure { tasks.cancelAll() }
        let fault = await tasks.next() ?? nil
        return fault.map { outcome.isFailure ? outcome : .failure($0) } ?? outcome
    }
    await clean()
    return try outcome.get()
}

extension Result {
    fileprivate var isFailure: Bool { if case .failure = self { true } else { false } }
}

extension Journal {
    /// A journal, and the notes (`note=`) that it is given, in order.
    package static func notes() -> (journal: Journal, notes: AsyncStream<String>) {
        let (notes, pen) = AsyncStream.makeStream(of: String.self)
        let journal = Journal { _, _, fields in
            for (key, value) in fields where key == .note { pen.yield(value.logText) }
        }
        return (journal, notes)
    }
}
