/// An answer that a simulated service gives instead of its judgement: a single wrong one, or a page of a
/// proxy or front end before the service.
public struct StrayAnswer: Sendable, Equatable {
    /// Which requests get it.
    public enum Choice: Sendable, Equatable {
        /// The next requests, this many.
        case next(Int)
        /// Each request whose number is a multiple of this, counted from 1 since the knob was set.
        case every(Int)
        /// Each request with this probability, 0 to 1.
        case share(Double)
    }

    /// HTTP status, 200 to 599.
    public var status: Int
    /// `content-type`; `nil`: none is sent.
    public var contentType: String?
    /// `retry-after`: seconds or a date; `nil`: none is sent.
    public var retryAfter: String?
    /// UTF-8.
    public var body: String
    /// Which requests get it.
    public var choice: Choice
    /// Only requests to this device token; `nil`: to all.
    public var address: String?

    /// - Parameter retryAfter: seconds or a date.
    /// - Parameter address: a device token; `nil`: whichever.
    public init(
        status: Int, contentType: String? = nil, retryAfter: String? = nil, body: String = "",
        on choice: Choice, address: String? = nil
    ) {
        self.status = status
        self.contentType = contentType
        self.retryAfter = retryAfter
        self.body = body
        self.choice = choice
        self.address = address
    }

    /// A page as front ends and proxies write them, with this status (200 to 599).
    public static func page(_ status: Int, on choice: Choice, address: String? = nil) -> StrayAnswer {
        StrayAnswer(
            status: status, contentType: "text/html; charset=UTF-8",
            body: "<!DOCTYPE html>\n<html lang=en>\n<title>Error \(status)</title>\n", on: choice,
            address: address)
    }
}

/// Stray answers that are still to be given. The first that matches is given.
struct StrayAnswers {
    /// The most that a knob keeps.
    static let limit = 16

    private(set) var knob: [StrayAnswer]
    /// For each: how many requests could have got it.
    private var seen: [Int]

    init(_ knob: [StrayAnswer] = []) {
        self.knob = Array(knob.prefix(Self.limit))
        seen = self.knob.map { _ in 0 }
    }

    /// Whether an answer depends on the request's address.
    var asksForAddress: Bool { knob.contains { $0.address != nil } }

    /// Sets the knob; unchanged answers go on counting.
    mutating func turn(_ knob: [StrayAnswer]) {
        if self.knob != Array(knob.prefix(Self.limit)) { self = StrayAnswers(knob) }
    }

    /// - Parameters:
    ///   - address: of the request, if ``asksForAddress`` says so.
    ///   - random: 64 random bits.
    mutating func take(for address: String?, random: () -> UInt64) -> StrayAnswer? {
        for index in knob.indices where knob[index].address == nil || knob[index].address == address {
            seen[index] += 1
            let isChosen =
                switch knob[index].choice {
                case .next(let count): seen[index] <= count
                case .every(let count): count > 0 && seen[index] % count == 0
                case .share(let share): Double(random() >> 11) / Double(UInt64(1) << 53) < share
                }
            if isChosen { return knob[index] }
        }
        return nil
    }
}

extension SimulatedAnswer {
    init(_ stray: StrayAnswer, apnsID: [UInt8] = []) {
        self.init(
            status: stray.status, apnsID: apnsID, contentType: stray.contentType,
            retryAfter: stray.retryAfter, body: Array(stray.body.utf8))
    }
}
