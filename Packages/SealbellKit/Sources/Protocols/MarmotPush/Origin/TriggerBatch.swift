import PushModel

/// Cuts encrypted tokens into triggers.
enum TriggerBatch {
    /// Without decoys: fills one trigger after the other, each as far as the format's measure and the frame
    /// allow.
    ///
    /// - Parameter items: each of which fits a trigger of its own.
    static func split(
        _ items: [Secret], _ format: TokenFormat, _ frame: TriggerFrame, _ path: GiftWrap.Path
    ) -> [[Secret]] {
        var batches: [[Secret]] = []
        var bytes = 0
        for item in items {
            let count = (batches.last?.count ?? format.batch) + 1
            if count > format.batch || !frame.takes(format, tokens: count, bytes: bytes + item.count, path) {
                batches.append([])
                bytes = 0
            }
            batches[batches.count - 1].append(item)
            bytes += item.count
        }
        return batches
    }

    /// Cuts a notification's tokens into triggers, shuffled and each with its own decoys (spec, "Processing
    /// Flow": an event has 2 to 5 of them). Where a relay takes few tokens at a time there are two decoys, or
    /// as many as fit: a real token comes first.
    ///
    /// - Parameter items: real ones, each of which fits a trigger of its own.
    static func triggers(
        _ items: [Secret], _ format: TokenFormat, _ frame: TriggerFrame, _ path: GiftWrap.Path,
        using generator: inout some RandomNumberGenerator
    ) -> [[Secret]] {
        var triggers: [[Secret]] = []
        var rest = items[...]
        // As long as a decoy may be, for it is as long as some real item.
        let longest = items.map(\.count).max() ?? 0
        let capacity = max(1, frame.room(format, each: longest, upTo: format.batch, path))
        while let first = rest.popFirst() {
            let drawn = Int.random(in: format.decoys, using: &generator)
            let decoys = capacity < 2 * format.decoys.upperBound ? min(2, capacity - 1) : drawn
            var batch = [first]
            var bytes = first.count
            while let item = rest.first {
                let count = batch.count + 1 + decoys
                let all = bytes + item.count + decoys * longest
                guard count <= format.batch, frame.takes(format, tokens: count, bytes: all, path) else {
                    break
                }
                batch.append(rest.removeFirst())
                bytes += item.count
            }
            fill(&batch, upTo: max(batch.count + decoys, format.leastItems), format, frame, path, &generator)
            batch.shuffle(using: &generator)
            triggers.append(batch)
        }
        return triggers
    }

    /// Fills a trigger up with decoys, as far as the frame allows.
    private static func fill(
        _ batch: inout [Secret], upTo count: Int, _ format: TokenFormat, _ frame: TriggerFrame,
        _ path: GiftWrap.Path, _ generator: inout some RandomNumberGenerator
    ) {
        let real = batch
        var bytes = batch.reduce(0) { $0 + $1.count }
        while batch.count < count {
            let more = decoy(for: real, &generator)
            bytes += more.count
            guard frame.takes(format, tokens: batch.count + 1, bytes: bytes, path) else { break }
            batch.append(more)
        }
    }

    /// A decoy is as long as some real item: where there is no padding, another length would give it away.
    private static func decoy(for real: [Secret], _ generator: inout some RandomNumberGenerator) -> Secret {
        Secret(generator.bytes(real.randomElement(using: &generator)?.count ?? 0))
    }
}
