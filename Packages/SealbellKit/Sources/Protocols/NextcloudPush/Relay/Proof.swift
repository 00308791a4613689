import Primitives
import PushModel
package import RSAKeys
import Synchronization
import WireFormats

/// Asking an instance whose key it is (§5.3).
extension NextcloudRelay {
    /// If the policy admits only some instances, a first registration must show that it belongs to one of
    /// them.
    func proveIfNeeded(_ form: RegistrationForm, _ inbound: NextcloudInbound) async throws(NextcloudError) {
        guard !policy.provenServers.isEmpty else { return }
        guard let cloudID = try form.provable(by: web) else { throw NextcloudError(.proofRequired) }
        guard policy.provenServers.contains(cloudID.server) else {
            throw NextcloudError(.instanceNotAdmitted)
        }
        try await prove(cloudID, form.ownership, inbound)
    }

    /// Asks the instance, and looks whether the identifier is one of that user's: otherwise anyone with an
    /// account at any instance could prove their own key, and take a guessed identifier with it.
    ///
    /// - Throws: `.rateLimited`, `.instanceUnreachable`, `.instanceUnfit`, `.identityRefused`.
    func prove(
        _ cloudID: CloudID, _ form: OwnershipForm, _ inbound: NextcloudInbound
    ) async throws(NextcloudError) {
        if !inbound.isRepeated {
            // Also where the word is known: the search behind it takes half a second of a core.
            try take(Toll(allowances.proofsOfSource, of: inbound.payer))
        }
        switch try await word(of: cloudID, for: form.key, inbound) {
        case .fault(let fault): throw fault.refusal
        case .key(let der):
            guard der == form.key.der, await isOne(of: cloudID, form.identifier) else {
                note(NoteCode("nextcloud.proof-refused"))
                throw NextcloudError(.identityRefused)
            }
        }
    }

    private func word(
        of cloudID: CloudID, for key: RSAPublicKey, _ inbound: NextcloudInbound
    ) async throws(NextcloudError) -> InstanceWord {
        guard let name = Digest16(of: Array(cloudID.proofURL.utf8)) else {
            throw NextcloudError(.instanceUnreachable)
        }
        switch words.begin(name, for: key.der, now: world.instant()) {
        case .known(let word): return word
        case .isAsked:
            guard let word = await words.join(name) else {
                throw .rateLimited(retryAfter: NextcloudLimits.proofDeadline)
            }
            return word
        case .asks:
            do throws(NextcloudError) { try chargeAsking(cloudID, inbound) } catch {
                words.finish(name, nil, now: world.instant())
                throw error
            }
            let word = await ask(cloudID)
            words.finish(name, word, now: world.instant())
            return word
        }
    }

    /// What the request to the instance costs: each goes to a host of a stranger's choice.
    private func chargeAsking(
        _ cloudID: CloudID, _ inbound: NextcloudInbound
    ) throws(NextcloudError) {
        if inbound.isRepeated { return }
        // For one user and client, so that nobody uses up the user's own share.
        let user = cloudID.payer.reveal { Array($0) } + [0] + Array("\(inbound.source?.value ?? 0)".utf8)
        let host = Array(cloudID.server.prefix { $0 != "/" }.utf8)
        guard let user = Digest16(of: user), let host = Digest16(of: host) else { return }
        try take(Toll(allowances.proofsOfUser, of: .peer(user)))
        try take(Toll(allowances.proofsOfInstance, of: .peer(host)))
        // Those that the operator has named are no strangers.
        if !policy.provenServers.contains(cloudID.server) {
            try take(Toll(allowances.proofsOfAll, of: .everybody))
        }
    }

    private func ask(_ cloudID: CloudID) async -> InstanceWord {
        let word = await answer(cloudID)
        guard case .fault(let fault) = word else { return word }
        note(NoteCode(fault.refusal.retry == .later ? "nextcloud.proof-unanswered" : "nextcloud.proof-unfit"))
        heard(fault)
        return word
    }

    private func answer(_ cloudID: CloudID) async -> InstanceWord {
        guard let web else { return .fault(.unreachable) }
        let answer: WebAnswer
        do throws(WebError) {
            answer = try await web.fetch(
                WebRequest(
                    .get, url: cloudID.proofURL, headers: [("OCS-APIRequest", "true")],
                    answerLimitBytes: NextcloudLimits.proofAnswerBytes,
                    deadline: NextcloudLimits.proofDeadline, publicAddressesOnly: true))
        } catch {
            return .fault(ProofFault(error.code))
        }
        guard answer.status == 200 else { return .fault(ProofFault(status: answer.status)) }
        guard let key = answer.body.reveal({ ProofAnswer.publicKey($0) }) else {
            return .fault(.malformedAnswer)
        }
        return .key(key.der)
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

extension RegistrationForm {
    /// The account that the form names to prove its key.
    ///
    /// - Returns: `nil` where it names none.
    /// - Throws: `.wrongType` for what is no cloud id; `.instanceUnfit` for one that proves nothing: who has
    ///   named an account must not be asked for one again.
    func provable(by web: (any WebFetch)?) throws(NextcloudError) -> CloudID? {
        guard namesCloudID, web != nil else { return nil }
        guard let cloudID else { throw NextcloudError(.wrongType, parameter: "cloudId") }
        guard !cloudID.isPlain else { throw NextcloudError(.instanceUnfit) }
        return cloudID
    }
}

extension NextcloudInbound {
    /// Whose share a call takes.
    var payer: Payer { source.map { .client($0) } ?? .everybody }
}

extension Digest16 {
    /// The beginning of SHA-256.
    init?(of bytes: [UInt8]) { self.init(SHA256.hash(bytes).prefix(16)) }
}
