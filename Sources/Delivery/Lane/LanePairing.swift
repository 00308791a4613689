import PushModel
import Synchronization

/// Pushes that go on in the pair's other lane, and those that come back with its answer.
extension Lane {
    /// The push goes on in the pair's other lane.
    func goOn(_ heard: LaneState.Heard, in other: (LaneQueue.Entry) -> Void) {
        let answer = heard.answer
        core.observer.attempted?(
            Attempt(heard.entry.push, answer, answer.outcome, .elsewhere, at: core.world.now()))
        var moved = heard.entry
        moved.firstWord = LaneQueue.FirstWord(answer, in: name)
        // It is added there before it is removed here, so that at every moment one of the two lanes counts it
        // (``Reclaim``).
        other(moved)
        change { $0.left(heard) }
        drained.ring()
    }

    /// The push came from the pair's other lane, and ends with the answer that it got there.
    func goBack(_ heard: LaneState.Heard) {
        guard let word = heard.entry.firstWord, let first = core.lane(word.lane) else {
            return finish(heard, learned: [])
        }
        let answer = heard.answer
        core.observer.attempted?(
            Attempt(heard.entry.push, answer, answer.outcome, .elsewhere, at: core.world.now()))
        first.end(heard.entry, by: word.answer)
        change { $0.left(heard) }
        drained.ring()
    }

    func end(_ entry: LaneQueue.Entry, by word: Answer) {
        var entry = entry
        entry.push.lane = name
        (entry.firstWord, entry.isMoved) = (nil, false)
        let random = core.world.random()
        let heard = state.withLock { [entry] in $0.returned(entry, word, random: random) }
        finish(heard, learned: [])
    }

    /// Pushes that were to be sent here end with the answer of the lane that they came from.
    func end(moved entries: [LaneQueue.Entry]) {
        for entry in entries {
            guard let word = entry.firstWord, let first = core.lane(word.lane) else {
                change { $0.keep(moved: entry) }
                continue
            }
            first.end(entry, by: word.answer)
            change { $0.ended(moved: entry) }
        }
    }
}
