package import PushModel

// The steps between a leased push and its answer that are the same for all push services.

extension HTTP2Pool {
    /// Sends the push's request within the bounds of its lease. A call must not ring twice.
    package func request(
        _ request: HTTP2Request, of leased: LeasedPush, on slot: HTTP2Slot
    ) async -> HTTP2Answer {
        handOver(request, of: leased, to: slot)
        return await send(on: slot)
    }

    /// Not async, so that no moment stands in a task's memory.
    private func handOver(_ request: HTTP2Request, of leased: LeasedPush, to slot: HTTP2Slot) {
        slot.take(request, within: leased, begun: moment)
    }
}

extension LeasedPush: HTTP2Terms {
    package var isUnrepeatable: Bool { push.pushClass == .urgent }
}

extension HTTP2Slot {
    /// Gives the stream back: the push is not sent, because its service would refuse it without doubt.
    package func refuse(_ judged: (Outcome, Reason), at now: UnixTime) -> Answer {
        release()
        return Answer(judged.0, judged.1, sentAt: now, fate: .local)
    }
}

extension HTTP2Answer {
    /// ``unanswered``, with the answer that may come yet.
    ///
    /// - Parameter judge: what that one means.
    package func unanswered(late judge: @escaping @Sendable (HTTP2Answer) async -> Answer) -> Answer {
        var word: Answer = unanswered
        word.late = late.map { late in
            LateAnswer {
                guard let answer = await late.answer() else { return nil }
                return await judge(answer)
            }
        }
        return word
    }
}
