/// An answer that a simulated service gives in the place of its judgement: one that is wrong for once, or a
/// page of a proxy or a front end that stands before it.
public struct StrayAnswer: Sendable, Equatable {
    /// Which requests get it.
    public enum Choice: Sendable, Equatable {
        /// So many requests from now on.
        case next(Int)
        /// Each request whose number this divides, counted from 1 since the knob was turned.
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
    /// Requests to this device token alone; `nil`: to all.
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

/// Stray answers that are still to be given. The first that fits is.
struct StrayAnswers {
    /// So many are kept of a knob.
    static let limit = 16

    private(set) var knob: [StrayAnswer]
    /// Of each: requests that it could have been given to.
    private var seen: [Int]

    init(_ knob: [StrayAnswer] = []) {
        self.knob = Array(knob.prefix(Self.limit))
        seen = self.knob.map { _ in 0 }
    }

    /// Whether an answer hangs on the request's address.
    var asksForAddress: Bool { knob.contains { $0.address != nil } }

    /// Turns the knob; what stands as it stood goes on counting.
    mutating func turn(_ knob: [StrayAnswer]) {
        if self.knob != Array(knob.prefix(Self.limit)) { self = StrayAnswers(knob) }
    }

    /// - Parameters:
    ///   - address: of the request, where ``asksForAddress`` wants it.
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
