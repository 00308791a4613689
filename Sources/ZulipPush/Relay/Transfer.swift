import PushModel
import WireFormats

/// Taking over a host name whose key was lost (§5.2, "Transfer").
extension ZulipRelay {
    /// Gives out a secret that the host must show. A second request replaces the first.
    func transfer(_ form: TransferForm) async throws(ZulipError) -> ZulipVerdict {
        let found = try await find([keys.host(form.hostname)])
        guard found[0] != nil else { throw ZulipError(.unknownHostname) }
        guard web != nil else { throw ZulipError(.notAdmitted) }
        let secret = randomText()
        let now = world.now()
        let record = Record(
            key: keys.challenge(form.hostname), touchedAt: now, expiresAt: now + ZulipLimits.challengeLife,
            body: secret)
        return Verdict(changes: [.put(record, if: .any)], reply: .now(.challenge(secret)))
    }

    /// Asks the host for the secret; when it shows it, its server gets a new key and the old one dies.
    func verifyChallenge(_ form: TransferForm) async throws(ZulipError) -> ZulipVerdict {
        let found = try await find([keys.host(form.hostname), keys.challenge(form.hostname)])
        guard let host = found[0], let id = UUIDText(bytes: host.body.reveal { Array($0) }) else {
            throw ZulipError(.unknownHostname)
        }
        guard let challenge = found[1], challenge.expiresAt > world.now() else {
            throw ZulipError(.noChallenge)
        }
        let shown = try await askOnce(form)
        guard shown == challenge.body else { throw ZulipError(.challengeFailed) }
        let servers = try await find([keys.server(id)])
        guard let record = servers[0], var server = ZulipServer(body: record.body) else {
            throw ZulipError(.unknownHostname)
        }
        guard server.standing == .active else { throw ZulipError(.serverIsDeactivated) }
        let key = randomText()
        let old = keys.oldKey(of: id, before: server.keyHash)
        memory.forget(id)
        server.oldKeyEnds = nil
        server.keyHash = ServerCredentials.hash(key: key.reveal { Array($0) })
        return Verdict(
            changes: [
                .put(server.record(keys, now: world.now()), if: .revision(record.revision)),
                // Each secret serves once.
                .delete(keys.challenge(form.hostname), if: .revision(challenge.revision)),
                .delete(old, if: .any)
            ],
            reply: .now(.credentials(id: id, key: key)), refusal: { _ in ZulipError(.overloaded) },
            notes: [NoteCode("zulip.host-transferred")])
    }

    /// Asks a host unless it is being asked: one that is slow to answer, or to be found, holds one call up.
    private func askOnce(_ form: TransferForm) async throws(ZulipError) -> Secret {
        guard asked.enter(form.hostname.text) else {
            var error = ZulipError(.rateLimited)
            error.retryAfter = ZulipLimits.challengeDeadline
            throw error
        }
        defer { asked.leave(form.hostname.text) }
        try chargeFetch()
        return try await fetchSecret(form)
    }

    private func fetchSecret(_ form: TransferForm) async throws(ZulipError) -> Secret {
        guard let web, let token = form.accessToken else { throw ZulipError(.notAdmitted) }
        let answer: WebAnswer
        do throws(WebError) {
            answer = try await web.fetch(
                WebRequest(
                    .get, url: "https://\(form.hostname.text)/api/v1/zulip-services/verify/\(token)/",
                    answerLimitBytes: ZulipLimits.challengeAnswerBytes,
                    deadline: ZulipLimits.challengeDeadline,
                    publicAddressesOnly: true))
        } catch {
            throw ZulipError(.challengeFailed)
        }
        guard answer.status == 200, let secret = Self.verificationSecret(answer.body) else {
            throw ZulipError(.challengeFailed)
        }
        return secret
    }

    private static func verificationSecret(_ body: Secret) -> Secret? {
        body.reveal { bytes in
            var reader = JSONReader(bytes, depthLimit: ZulipLimits.jsonDepth)
            var secret: Secret?
            do {
                try reader.beginObject()
                while let name = try reader.nextMember() {
                    if name.equals("verification_secret") {
                        secret = try reader.readString().secret()
                    } else {
                        try reader.skipValue()
                    }
                }
                try reader.end()
                return secret
            } catch {
                return nil
            }
        }
    }

    /// 64 characters that carry 256 random bits.
    private func randomText() -> Secret {
        var bytes = world.randomBytes(ZulipLimits.organizationKeyBytes / 2)
        defer { bytes.withUnsafeMutableBytes { wipe($0) } }
        return Secret(Hex.encode(bytes).utf8)
    }
}
