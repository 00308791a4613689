import PushModel
import WireFormats

/// Taking over a host name whose key was lost (§5.2, "Transfer").
extension ZulipRelay {
    /// Gives out a secret that the host must show. It changes nothing for those given out before: anyone who
    /// asks, and how often, no transfer that is under way ends by it.
    func transfer(_ form: TransferForm) async throws(ZulipError) -> ZulipVerdict {
        let now = world.now()
        let day = TransferChallenge.Key.day(now)
        let found = try await find([keys.host(form.hostname), keys.challengeKey(day)])
        guard let id = found[0]?.holder,
            let server = try await find([keys.server(id)])[0].flatMap({ ZulipServer(body: $0.body) })
        else { throw ZulipError(.unknownHostname) }
        guard web != nil else { throw ZulipError(.notAdmitted) }
        let known = TransferChallenge.Key(found[1], day: day)
        let key = known ?? .new(day, world)
        let secret = TransferChallenge.make(
            for: server, at: form.hostname, key, end: now + ZulipLimits.challengeLife,
            random: world.randomBytes(ZulipLimits.organizationKeyBytes / 2))
        return Verdict(
            changes: known == nil ? [.put(key.record(keys, now: now), if: .absent)] : [],
            reply: .now(.challenge(secret)),
            // The day's first two came at one time.
            refusal: { _ in ZulipError(.overloaded) })
    }

    /// Asks the host for the secret; when it shows it, its server gets a new key and the old one dies.
    func verifyChallenge(_ form: TransferForm) async throws(ZulipError) -> ZulipVerdict {
        let now = world.now()
        let today = TransferChallenge.Key.day(now)
        // One given out before midnight is good beyond it; and another relay's clock may be ahead.
        let days = [today - 1, today, today + 1]
        let found = try await find([keys.host(form.hostname)] + days.map { keys.challengeKey($0) })
        guard let id = found[0]?.holder else { throw ZulipError(.unknownHostname) }
        let known = zip(days, found.dropFirst()).compactMap { TransferChallenge.Key($1, day: $0) }
        // A host is not asked for a secret that was never given out.
        guard !known.isEmpty else { throw ZulipError(.noChallenge) }
        let shown = try await askOnce(form)
        guard let end = TransferChallenge.end(of: shown) else { throw ZulipError(.challengeFailed) }
        guard let record = try await find([keys.server(id)])[0], var server = ZulipServer(body: record.body)
        else { throw ZulipError(.unknownHostname) }
        let given = TransferChallenge.Key.day(end - ZulipLimits.challengeLife)
        guard let made = known.first(where: { $0.day == given }),
            TransferChallenge.isRight(shown, for: server, at: form.hostname, made)
        else { throw ZulipError(.challengeFailed) }
        guard end > now else { throw ZulipError(.noChallenge) }
        guard server.standing == .active else { throw ZulipError(.serverIsDeactivated) }
        let key = randomText()
        let old = keys.oldKey(of: id, before: server.keyHash)
        memory.forget(id)
        server.oldKeyEnds = nil
        // With the key ends every secret that was given out for the host: each serves once.
        server.keyHash = ServerCredentials.hash(key: key.reveal { Array($0) })
        return Verdict(
            changes: [
                .put(server.record(keys, now: now), if: .revision(record.revision)), .delete(old, if: .any)
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
