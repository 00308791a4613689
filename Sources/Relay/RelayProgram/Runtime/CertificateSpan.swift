import NIOSSL
import PushModel

/// When a certificate of our own is good: from when its leaf is, until the first of its chain ends.
struct CertificateSpan: Sendable, Hashable {
    var from: UnixTime
    var until: UnixTime

    /// Reads a PEM chain, leaf first; `nil` when there is none in the file.
    init?(file: String) {
        // The reason is the parser's own text, which may quote the file.
        guard let chain = try? NIOSSLCertificate.fromPEMFile(file), let leaf = chain.first else { return nil }
        from = UnixTime(seconds: Int64(leaf.notValidBefore))
        let ends = chain.map { Int64($0.notValidAfter) }.min() ?? Int64(leaf.notValidAfter)
        until = UnixTime(seconds: ends)
    }

    /// Days that are left, begun ones counted; 0 when it has ended.
    func days(at now: UnixTime) -> Int {
        let left = until.seconds - now.seconds
        return left <= 0 ? 0 : Int((left + 86_399) / 86_400)
    }
}
