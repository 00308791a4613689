public import PushModel
public import SealbellKit

/// One run of the daily job that asks the relay which ids died long ago (§14.7): page after page for one
/// realm. A value; the caller makes the calls.
///
/// ```swift
/// var run = StaleListRun(realm: realm)
/// while run.isUnderWay { step = run.take(answer(run.call(by: origin)), now: now, using: &random) }
/// ```
public struct StaleListRun: Sendable {
    /// Canonical lower-case UUID.
    public let realm: String
    /// The last page ended with this id.
    public private(set) var after: Int64 = 0
    /// Another page is to be asked for.
    public private(set) var isUnderWay = true
    /// Pages so far, at most ``ZulipOriginLimits/stalePagesPerRun``.
    public private(set) var pages: Int

    /// What a page says.
    public struct Step: Sendable, Hashable {
        /// Rising; the caller takes them to ``ZulipRegistrations/end(devices:realm:askedAt:)`` of every
        /// user who has one.
        public var ids: [Int64] = []
        /// When the next run begins, 15 minutes to 25 hours; `nil` where another page is to be asked for.
        public var nextRun: Duration?
        /// Something that time alone does not mend, and that is no relay without the list.
        public var fault: RelayFault?
    }

    /// - Parameter id: the run goes on behind this page; 0: it begins.
    /// - Parameter pages: how many it has had before.
    public init(realm: String, after id: Int64 = 0, pages: Int = 0) {
        self.realm = realm
        after = id
        self.pages = pages
    }

    /// When a realm's first run begins: at some moment of the next day, so that not all origins ask at once.
    public static func firstRun(using generator: inout some RandomNumberGenerator) -> Duration {
        draw(.zero, ZulipOriginLimits.staleInterval, &generator)
    }

    /// When the next run begins behind one that has begun.
    public static func nextRun(using generator: inout some RandomNumberGenerator) -> Duration {
        let interval = ZulipOriginLimits.staleInterval
        return draw(interval, interval + ZulipOriginLimits.staleJitter, &generator)
    }

    /// The HTTP request for the next page, ``ZulipOrigin/staleDevices(realm:after:limit:)``.
    public func call(by origin: ZulipOrigin) -> HTTPCall { origin.staleDevices(realm: realm, after: after) }

    /// Judges the answer to the last call.
    ///
    /// A page that does not rise ends the run, and nothing of it is taken: a list that goes back would never
    /// end. So does what cannot be read, and what a relay without the list says.
    public mutating func take(
        _ answer: CallAnswer, now: UnixTime, using generator: inout some RandomNumberGenerator
    ) -> Step {
        let read = RelayAnswerReading(answer.body)
        guard answer.status == 200 else {
            let fault = RelayFault(answer, read.code)
            if answer.mayPass { return end(soon: true, asked: answer.pause(now: now), &generator) }
            return end(fault: answer.status == 404 ? nil : fault, &generator)
        }
        guard read.isSuccess, let ids = read.deviceIDs, let next = read.nextAfter else {
            return end(fault: .notTheProtocol, &generator)
        }
        guard rises(ids, next) else { return end(fault: .notTheProtocol, &generator) }
        pages += 1
        guard let next, pages < ZulipOriginLimits.stalePagesPerRun else { return end(ids: ids, &generator) }
        after = next
        return Step(ids: ids)
    }

    /// Every id above the one before, and the cursor no lower than the last.
    private func rises(_ ids: [Int64], _ next: Int64?) -> Bool {
        var last = after
        for id in ids {
            guard id > last else { return false }
            last = id
        }
        return next.map { $0 > after && $0 >= last } ?? true
    }

    private mutating func end(
        ids: [Int64] = [], soon: Bool = false, asked: Duration? = nil, fault: RelayFault? = nil,
        _ generator: inout some RandomNumberGenerator
    ) -> Step {
        isUnderWay = false
        let (low, high) = ZulipOriginLimits.staleRetry
        let interval = ZulipOriginLimits.staleInterval
        let wait =
            soon
            ? max(Self.draw(low, high, &generator), min(asked ?? .zero, interval))
            : Self.nextRun(using: &generator)
        return Step(ids: ids, nextRun: wait, fault: fault)
    }

    private static func draw(
        _ low: Duration, _ high: Duration, _ generator: inout some RandomNumberGenerator
    ) -> Duration {
        .milliseconds(Int64.random(in: low.wholeMilliseconds...high.wholeMilliseconds, using: &generator))
    }
}
