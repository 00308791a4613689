/// How often a push was tried, and how often the result is not known. A row keeps it as one number, so that
/// it outlives the process and needs no column of its own.
package struct Attempts: Sendable, Hashable {
    /// Attempts made so far, at most 65,535: one a minute for six weeks.
    package private(set) var made: Int
    /// Those of them whose fate is unknown, at most 127.
    package private(set) var unknown: Int
    /// Those of them that met an answer which cannot be read, at most 127.
    package private(set) var unreadable: Int

    private static let madeBits = 16
    private static let doubtBits = 7
    private static let mostMade = (1 << madeBits) - 1
    private static let mostDoubts = (1 << doubtBits) - 1

    /// Reads a row's number: attempts in its low 16 bits, above them seven bits for each kind of doubt. Other
    /// bits are dropped, and a negative number counts as 0.
    package init(stored: Int) {
        let stored = max(0, stored)
        made = stored & Self.mostMade
        unknown = stored >> Self.madeBits & Self.mostDoubts
        unreadable = stored >> (Self.madeBits + Self.doubtBits) & Self.mostDoubts
    }

    /// No number is higher: 30 bits.
    package static let mostStored =
        mostMade | mostDoubts << madeBits | mostDoubts << (madeBits + doubtBits)

    package var stored: Int {
        made | unknown << Self.madeBits | unreadable << (Self.madeBits + Self.doubtBits)
    }

    /// After one more.
    package func andOne() -> Attempts {
        var next = self
        next.made = min(made + 1, Self.mostMade)
        return next
    }

    /// After one more whose fate is unknown.
    package func andOneUnknown() -> Attempts {
        var next = andOne()
        next.unknown = min(unknown + 1, Self.mostDoubts)
        return next
    }

    /// After one more with an answer that cannot be read.
    package func andOneUnreadable() -> Attempts {
        var next = andOne()
        next.unreadable = min(unreadable + 1, Self.mostDoubts)
        return next
    }
}
