import PushModel

// How a call waits for a connection and gets its answer.
extension PostgresCore {
    /// Runs one call by itself.
    func single<Value: Sendable>(
        _ kind: WorkQueue.Kind, patience: Duration? = nil,
        _ run: @escaping @Sendable (PostgresSession) throws(PostgresFault) -> Value
    ) async throws(StoreError) -> Value {
        let outcome: Result<Value, StoreError> = await withCheckedContinuation { continuation in
            let work = Job.Work.single { session throws(PostgresFault) in
                let value = try run(session)
                return { continuation.resume(returning: .success(value)) }
            }
            add(work, kind, patience: patience) { continuation.resume(returning: .failure($0)) }
        }
        return try outcome.get()
    }

    func add(
        _ work: Job.Work, _ kind: WorkQueue.Kind, rows: Int = 1, bytes: Int = 0, patience: Duration? = nil,
        fail: @escaping @Sendable (StoreError) -> Void
    ) {
        queue.add(
            Job(work, rows: rows, bytes: bytes, patience: patience ?? limits.patience, fail: fail), kind)
    }

    /// A call that changes records.
    func change(
        _ call: @Sendable (@escaping @Sendable (ChangeCall.Answer) -> Void) -> ChangeCall
    ) async throws(StoreError) -> ChangeCall.Answer {
        let outcome: Result<ChangeCall.Answer, StoreError> = await withCheckedContinuation { continuation in
            let call = call { continuation.resume(returning: .success($0)) }
            let rows = max(1, call.runs.count + call.steps.count + call.pushes.count)
            add(.change(call), .change, rows: rows) { continuation.resume(returning: .failure($0)) }
        }
        return try outcome.get()
    }
}
