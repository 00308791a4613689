import Primitives
import PushModel
package import RSAKeys
import Synchronization
import WireFormats

/// Asking an instance whose key it is (§5.3).
extension NextcloudRelay {
    /// Where the policy admits some instances alone, a first registration shows that it is of one of them.
    func proveIfNeeded(_ form: RegistrationForm) async throws(NextcloudError) {
        guard !policy.provenServers.isEmpty else { return }
        guard let cloudID = form.cloudID, !cloudID.isPlain, web != nil,
            policy.provenServers.contains(cloudID.server)
        else { throw NextcloudError(.proofRequired) }
        try await prove(cloudID, form.ownership)
    }

    /// Asks the instance, and looks whether the identifier is one of that user's: otherwise anyone with an
    /// account at any instance could prove their own key, and take a guessed identifier with it.
    ///
    /// - Throws: `.rateLimited`, `.instanceUnreachable`, `.identityRefused`.
    func prove(_ cloudID: CloudID, _ form: OwnershipForm) async throws(NextcloudError) {
        let name = SHA256.hash(cloudID.payer)
        guard let payer = Digest16(name.prefix(16)), asked.enter(payer) else {
            throw .rateLimited(retryAfter: NextcloudLimits.proofDeadline)
        }
        defer { asked.leave(payer) }
        try take(Toll(allowances.proofsOfUser, of: .peer(payer)))
        try take(Toll(allowances.proofsOfAll, of: .everybody))
        guard try await publicKey(of: cloudID) == form.key else { throw NextcloudError(.identityRefused) }
        guard await isOne(of: cloudID, form.identifier) else { throw NextcloudError(.identityRefused) }
    }

    private func publicKey(of cloudID: CloudID) async throws(NextcloudError) -> RSAPublicKey {
        guard let web else { throw NextcloudError(.instanceUnreachable) }
        let answer: WebAnswer
        do throws(WebError) {
            answer = try await web.fetch(
                WebRequest(
                    .get, url: cloudID.proofURL, headers: [("OCS-APIRequest", "true")],
                    answerLimitBytes: NextcloudLimits.proofAnswerBytes,
                    deadline: NextcloudLimits.proofDeadline, publicAddressesOnly: true))
        } catch {
            throw NextcloudError(.instanceUnreachable)
        }
        switch answer.status {
        case 200:
            guard let key = answer.body.reveal({ ProofAnswer.publicKey($0) }) else {
                throw NextcloudError(.instanceUnreachable)
            }
            return key
        case 404: throw NextcloudError(.identityRefused)
        default: throw NextcloudError(.instanceUnreachable)
        }
    }

    /// Whether some app password of that user has this identifier: their numbers are small and run on.
    private func isOne(of cloudID: CloudID, _ identifier: DeviceIdentifier) async -> Bool {
        let most = policy.appPasswords
        return await withTaskExecutorPreference(globalConcurrentExecutor) {
            var search = IdentifierSearch(cloudID)
            // Ends: the numbers rise.
            while search.next <= most {
                if search.finds(identifier, before: min(search.next + IdentifierSearch.step, most + 1)) {
                    return true
                }
                await Task.yield()
            }
            return false
        }
    }
}

/// Tries `["<cloud id>",<n>]` for one number after the other.
struct IdentifierSearch {
    /// About a millisecond of work.
    static let step = 2_048

    private(set) var next = 1
    private let beginning: SharedBeginning
    private var rest: [UInt8] = []

    init(_ cloudID: CloudID) {
        var text = PHPText()
        text.raw("[")
        cloudID.text.reveal { text.string(String(decoding: $0, as: UTF8.self)) }
        text.raw(",")
        beginning = SharedBeginning(text.bytes)
    }

    mutating func finds(_ identifier: DeviceIdentifier, before end: Int) -> Bool {
        while next < end {
            rest.removeAll(keepingCapacity: true)
            var number = next
            repeat {
                rest.append(0x30 + UInt8(number % 10))
                number /= 10
            } while number > 0
            rest.reverse()
            rest.append(0x5D)
            next += 1
            if beginning.identifier(endingWith: rest) == identifier { return true }
        }
        return false
    }
}

/// What an instance answers.
package enum ProofAnswer {
    /// `ocs.data.public`; `nil` for anything that has none.
    package static func publicKey(_ bytes: UnsafeRawBufferPointer) -> RSAPublicKey? {
        var reader = JSONReader(bytes, depthLimit: NextcloudLimits.jsonDepth)
        do throws(FormatError) {
            let text = try member("ocs", &reader) { reader throws(FormatError) in
                try member("data", &reader) { reader throws(FormatError) in
                    try member("public", &reader) { reader throws(FormatError) in
                        try reader.readString().secret()
                    }
                }
            }
            try reader.end()
            // A text that is no key is no answer.
            return text.flatMap { text in text.reveal { try? RSAPublicKey(pem: $0) } }
        } catch {
            return nil
        }
    }

    private static func member<Result>(
        _ name: StaticString, _ reader: inout JSONReader,
        _ read: (inout JSONReader) throws(FormatError) -> Result?
    ) throws(FormatError) -> Result? {
        var found: Result?
        try reader.beginObject()
        while let member = try reader.nextMember() {
            if member.equals(name) { found = try read(&reader) } else { try reader.skipValue() }
        }
        return found
    }
}

/// Cloud ids of which an instance is being asked: each for as long as one proof takes, so their number is
/// bounded by that of proofs.
final class ProofsUnderWay: Sendable {
    private let users = Mutex<Set<Digest16>>([])

    /// False when that user's key is being asked for already.
    func enter(_ user: Digest16) -> Bool { users.withLock { $0.insert(user).inserted } }
    func leave(_ user: Digest16) { users.withLock { _ = $0.remove(user) } }
}
