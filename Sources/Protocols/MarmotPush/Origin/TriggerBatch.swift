import PushModel

/// Cuts encrypted tokens into triggers.
enum TriggerBatch {
    /// Fills one trigger after the other, each as far as the format's measure and the frame allow.
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

    /// Random items of the sizes that the real ones have, for a notification as a whole.
    static func decoys(
        for real: [Secret], _ format: TokenFormat, using generator: inout some RandomNumberGenerator
    ) -> [Secret] {
        (0..<Int.random(in: format.decoys, using: &generator)).map { _ in decoy(for: real, &generator) }
    }

    /// Fills a trigger up to the fewest items that its format asks for, as far as the frame allows.
    static func fill(
        _ batch: inout [Secret], _ format: TokenFormat, _ frame: TriggerFrame, _ path: GiftWrap.Path,
        using generator: inout some RandomNumberGenerator
    ) {
        let real = batch
        var bytes = batch.reduce(0) { $0 + $1.count }
        while batch.count < format.leastItems {
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
