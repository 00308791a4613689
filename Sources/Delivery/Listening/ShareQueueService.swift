import ServiceLifecycle
import WorkPool

extension ShareQueue {
    /// Runs an ingress: `read` puts items in, and beside it workers take them out. When `read` returns, what
    /// is left is taken, and then this returns.
    ///
    /// Workers are not on an event loop, where child tasks would otherwise run: taking an item in takes as
    /// long as reading ten, and a peer drops what a slow reader leaves waiting.
    ///
    /// - Parameters:
    ///   - take: one item; it is called by as many workers at once.
    ///   - end: called at a graceful stop; `nil`: `stop` is.
    ///   - stop: called when the task is cancelled. Both make `read` return.
    package func serve(
        workers: Int, take: @escaping @Sendable (Item) async -> Void, end: (@Sendable () -> Void)? = nil,
        stop: @escaping @Sendable () -> Void, read: () async -> Void
    ) async {
        await withGracefulShutdownHandler {
            await withTaskCancellationHandler {
                await withDiscardingTaskGroup { group in
                    for _ in 0..<workers {
                        group.addTask(executorPreference: PoolExecutor.shared, priority: .utility) {
                            while let item = await self.take() { await take(item) }
                        }
                    }
                    await read()
                    self.close()
                }
            } onCancel: {
                stop()
            }
        } onGracefulShutdown: {
            (end ?? stop)()
        }
    }
}
