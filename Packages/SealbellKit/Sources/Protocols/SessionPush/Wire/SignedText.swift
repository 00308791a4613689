import PushModel
import WireFormats

/// The texts that a device signs (§4).
enum SignedText {
    /// `MONITOR<account><sig_ts><0|1><ns,ns,…>`
    static func monitor(
        _ account: AccountID, at signedAt: Int64, wantsData: Bool, _ namespaces: [Int16]
    ) -> Secret {
        var list: [UInt8] = []
        list.reserveCapacity(7 * namespaces.count)
        for namespace in namespaces {
            if !list.isEmpty { list.append(0x2C) }
            Decimal.append(Int64(namespace), to: &list)
        }
        return text("MONITOR", account, signedAt, [wantsData ? 0x31 : 0x30] + list)
    }

    /// `UNSUBSCRIBE<account><sig_ts>`
    static func unsubscribe(_ account: AccountID, at signedAt: Int64) -> Secret {
        text("UNSUBSCRIBE", account, signedAt, [])
    }

    private static func text(
        _ word: StaticString, _ account: AccountID, _ signedAt: Int64, _ rest: [UInt8]
    ) -> Secret {
        var end: [UInt8] = []
        Decimal.append(signedAt, to: &end)
        end += rest
        let start = word.utf8CodeUnitCount
        let hex = start..<start + 2 * SessionLimits.accountBytes
        return Secret(count: hex.upperBound + end.count) { out in
            out.copyMemory(from: UnsafeRawBufferPointer(start: word.utf8Start, count: start))
            account.bytes.reveal {
                Hex.write($0, into: UnsafeMutableRawBufferPointer(rebasing: out[hex]))
            }
            UnsafeMutableRawBufferPointer(rebasing: out[hex.upperBound...]).copyBytes(from: end)
        }
    }
}

/// Numbers in base 10 without padding.
enum Decimal {
    static func append(_ value: Int64, to out: inout [UInt8]) {
        if value < 0 { out.append(0x2D) }
        digits(value.magnitude, to: &out)
    }

    private static func digits(_ value: UInt64, to out: inout [UInt8]) {
        if value >= 10 { digits(value / 10, to: &out) }
        out.append(0x30 + UInt8(value % 10))
    }
}
