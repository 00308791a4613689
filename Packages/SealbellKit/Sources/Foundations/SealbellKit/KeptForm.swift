import Primitives
package import PushModel
import WireFormats

/// What a device keeps between runs: rows of texts behind a head with a title, a version and a digest, as a
/// JSON array of arrays in its one spelling.
package enum KeptForm {
    private static let version = "1"

    /// - Parameter rows: UTF-8 in each cell.
    package static func write(_ title: StaticString, _ rows: [[Secret]]) -> Secret {
        let digest = Secret(Hex.encode(SHA256.hash(KeptRows.write(rows))).utf8)
        let head = [Secret("\(title)".utf8), Secret(version.utf8), digest]
        return KeptRows.write([head] + rows)
    }

    /// - Parameter limit: bytes of the text.
    /// - Returns: the rows behind the head.
    /// - Throws: `.malformedKept` for what ``write(_:_:)`` has not written under this title, whatever is
    ///   wrong with it.
    package static func read(
        _ title: StaticString, _ kept: Secret, atMost limit: Int
    ) throws(DeviceError) -> [[Secret]] {
        guard let rows = KeptRows.read(kept, atMost: limit), !rows.isEmpty else {
            throw DeviceError(.malformedKept)
        }
        let behind = Array(rows[1...])
        // Head, digest and spelling in one: a text has one form, and this is it or not.
        guard write(title, behind) == kept else { throw DeviceError(.malformedKept) }
        return behind
    }
}

extension Secret {
    /// A cell of a kept row.
    package init(cell text: String) { self.init(text.utf8) }
    /// Milliseconds; empty for `nil`.
    package init(cell time: UnixTime?) { self.init(cell: time.map { String($0.milliseconds) } ?? "") }
    /// `yes` or `no`.
    package init(cell flag: Bool) { self.init(cell: flag ? "yes" : "no") }

    /// The moment that a cell has; `.some(nil)` for an empty one, `nil` for what is no moment.
    package var moment: UnixTime?? {
        if count == 0 { return .some(nil) }
        return Int64(word).map { .some(UnixTime(milliseconds: $0)) }
    }

    /// What a cell of `yes` or `no` says; `nil` for anything else.
    package var flag: Bool? {
        switch word {
        case "yes": true
        case "no": false
        default: nil
        }
    }
}
