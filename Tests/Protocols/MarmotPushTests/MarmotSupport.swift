import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Testing
import WireFormats

/// What the suites of this protocol share.
enum MarmotSupport {
    static let now: Int64 = 1_767_225_600
    /// The seed of every world here, so that a run can be repeated.
    static func world(_ seed: UInt64 = 44) -> World { .fixed(seed: seed, at: UnixTime(seconds: now)) }

    /// A pair whose scalar is that small number.
    static func pair(_ number: UInt8) throws -> Secp256k1KeyPair {
        try Secp256k1KeyPair(secret: Secret([UInt8](repeating: 0, count: 31) + [number]))
    }

    static func text(_ text: String) -> Secret { Secret(text.utf8) }

    static func signed(
        _ kind: Int = 1, tags: [[String]] = [], _ content: String = "", by number: UInt8 = 3
    ) throws -> NostrEvent {
        .signed(
            kind: kind, createdAt: now, tags: tags, content: Secret(content.utf8), by: try pair(number),
            auxiliary: [UInt8](repeating: 7, count: 32))
    }

    /// The code of what is thrown; `nil` when nothing is.
    static func code(_ attempt: () throws(MarmotError) -> Void) -> MarmotError.Code? {
        do { try attempt() } catch { return error.code }
        return nil
    }
}
