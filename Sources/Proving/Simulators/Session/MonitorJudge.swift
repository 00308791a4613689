package import PushModel
import SessionPush
import WireFormats

/// Judges watches as a storage server does: the same checks, in the same order, with the same numbers.
package struct MonitorJudge {
    /// A server's refusals, with their numbers.
    package enum Refusal: Int, Error {
        case arguments = 1
        case account, namespaces, timestamp, signature, wrongSwarm

        var text: String {
            switch self {
            case .arguments: "Invalid arguments"
            case .account: "Invalid pubkey"
            case .namespaces: "Invalid namespaces"
            case .timestamp: "Invalid timestamp"
            case .signature: "Signature verification failed"
            case .wrongSwarm: "Account is not in this swarm"
            }
        }
    }

    /// One valid watch.
    package struct Watch: Sendable {
        package let account: [UInt8]
        package let namespaces: Set<Int16>
        package let wantsData: Bool
    }

    package let now: UnixTime
    private let memo: CurveMemo

    package init(now: UnixTime) { self.init(now: now, CurveMemo()) }

    init(now: UnixTime, _ memo: CurveMemo) {
        self.now = now
        self.memo = memo
    }

    /// - Returns: one verdict for each dictionary, and whether they came as a list; `nil` if the body cannot
    ///   be read at all.
    package func judge(_ body: UnsafeRawBufferPointer) -> (verdicts: [Result<Watch, Refusal>], isList: Bool)?
    {
        var reader = BencodeReader(body)
        do {
            guard try reader.peek() == .list else {
                let verdict = try judge(&reader)
                try reader.end()
                return ([verdict], false)
            }
            var verdicts: [Result<Watch, Refusal>] = []
            try reader.beginList()
            while try reader.nextElement() { verdicts.append(try judge(&reader)) }
            try reader.end()
            return (verdicts, true)
        } catch {
            return nil
        }
    }

    /// The answer to them.
    package static func reply(_ verdicts: [Result<Watch, Refusal>], isList: Bool) -> [UInt8] {
        var writer = BencodeWriter()
        if isList { writer.beginList() }
        for verdict in verdicts {
            switch verdict {
            case .success:
                writer.beginDictionary()
                writer.key("success")
                writer.int(Int64(1))
                writer.endDictionary()
            case .failure(let refusal): write(refusal, into: &writer)
            }
        }
        if isList { writer.endList() }
        return writer.bytes
    }

    private static func write(_ refusal: Refusal, into writer: inout BencodeWriter) {
        writer.beginDictionary()
        writer.key("errcode")
        writer.int(Int64(refusal.rawValue))
        writer.key("error")
        writer.string(Array(refusal.text.utf8))
        writer.endDictionary()
    }

    // MARK: One dictionary

    /// Its content.
    private struct Parts {
        var ed25519: [UInt8]?
        var delegation: (token: [UInt8], signature: [UInt8])?
        var wantsData = false
        var namespaces: [Int16] = []
        var account: [UInt8]?
        var signature: [UInt8] = []
        var timestamp: Int64 = 0
    }

    private func judge(_ reader: inout BencodeReader) throws(FormatError) -> Result<Watch, Refusal> {
        // A refused dictionary must not hide the next.
        let raw = try reader.skipValue()
        var single = BencodeReader(raw)
        do {
            return .success(try verify(try Self.parts(&single)))
        } catch let refusal as Refusal {
            return .failure(refusal)
        } catch {
            return .failure(.arguments)
        }
    }

    private static func parts(_ reader: inout BencodeReader) throws -> Parts {
        var parts = Parts()
        try reader.beginDictionary()
        parts.ed25519 = try string("P", 32, else: .account, &reader)
        let signature = try string("S", 64, else: .account, &reader)
        let token = try string("T", 36, else: .account, &reader)
        guard (signature == nil) == (token == nil) else { throw Refusal.arguments }
        if let token, let signature { parts.delegation = (token, signature) }
        if try reader.find("d") { parts.wantsData = try reader.readInteger().int64 ?? 0 != 0 }
        parts.namespaces = try namespaces(&reader)
        parts.account = try string("p", 33, else: .account, &reader)
        guard let signed = try string("s", 64, else: .signature, &reader), try reader.find("t"),
            let timestamp = try reader.readInteger().int64
        else { throw Refusal.arguments }
        (parts.signature, parts.timestamp) = (signed, timestamp)
        try reader.endDictionary()
        return parts
    }

    private static func string(
        _ key: StaticString, _ count: Int, else refusal: Refusal, _ reader: inout BencodeReader
    ) throws -> [UInt8]? {
        guard try reader.find(key) else { return nil }
        let value = try reader.readString()
        guard value.count == count else { throw refusal }
        return Array(value)
    }

    private static func namespaces(_ reader: inout BencodeReader) throws -> [Int16] {
        guard try reader.find("n") else { throw Refusal.arguments }
        var list: [Int16] = []
        try reader.beginList()
        while try reader.nextElement() {
            guard let number = try reader.readInteger().int64, let namespace = Int16(exactly: number),
                list.last.map({ $0 < namespace }) ?? true
            else { throw Refusal.namespaces }
            list.append(namespace)
        }
        guard !list.isEmpty else { throw Refusal.namespaces }
        return list
    }

    private func verify(_ parts: Parts) throws(Refusal) -> Watch {
        guard (parts.ed25519 == nil) != (parts.account == nil) else { throw .arguments }
        let account: [UInt8]
        let owner: [UInt8]
        if let ed25519 = parts.ed25519 {
            guard let x25519 = memo.x25519(of: ed25519) else { throw .account }
            account = [0x05] + x25519
            owner = ed25519
        } else {
            account = parts.account ?? []
            guard account.first != 0x05 else { throw .account }
            owner = Array(account.dropFirst())
        }
        let signedAt = UnixTime(seconds: parts.timestamp)
        guard signedAt > now - .seconds(14 * 86_400), signedAt < now + .seconds(86_400) else {
            throw .timestamp
        }
        let list = parts.namespaces.map(String.init).joined(separator: ",")
        let text = "MONITOR\(Hex.encode(account))\(parts.timestamp)\(parts.wantsData ? 1 : 0)\(list)"
        let signer = try self.signer(parts.delegation, owner: owner, prefix: account.first ?? 0)
        guard memo.holds(parts.signature, over: Array(text.utf8), by: signer) else { throw .signature }
        return Watch(account: account, namespaces: Set(parts.namespaces), wantsData: parts.wantsData)
    }

    /// The key that must have signed: the owner's, or one for which the owner has signed.
    private func signer(
        _ delegation: (token: [UInt8], signature: [UInt8])?, owner: [UInt8], prefix: UInt8
    ) throws(Refusal) -> [UInt8] {
        guard let (token, signature) = delegation else { return owner }
        let (mayRead, anyPrefix) = (token[1] & 1 != 0, token[1] & 8 != 0)
        guard mayRead, anyPrefix || token[0] == prefix, memo.holds(signature, over: token, by: owner) else {
            throw .signature
        }
        return Array(token[4...])
    }
}
