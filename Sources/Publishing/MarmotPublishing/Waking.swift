import MarmotPush
import PushModel
import Secp256k1Keys
import Synchronization
import WebSocket

/// One server's phones, from its relay list to its relays' answers.
extension MarmotPublisher {
    func wake(_ server: XOnlyKey, _ tokens: [GossipToken]) async -> WakeReport {
        var report = WakeReport(server: server, tokens: tokens.count)
        let hints = RelayList.usable(tokens.lazy.compactMap(\.relayHint))
        if needsList(tokens) { await lookUp(server, hints, isDoubted: false) }
        var made = await triggers(server, tokens, hints)
        if !made.isWhole {
            // A list from the last run may name nobody who still listens.
            await lookUp(server, hints, isDoubted: true)
            made = await triggers(server, tokens, hints)
        }
        let outcomes = await inTurns(made.triggers, PublishingLimits.triggersAtOnce) { trigger in
            await self.publish(trigger, hints)
        }
        report.hasList = book.withLock { $0.list(of: server) } != nil
        report.triggers = made.triggers.count
        report.isWhole = made.isWhole
        for outcome in outcomes {
            if outcome.contains(where: { $0.answer == .accepted }) { report.accepted += 1 }
            for (url, answer) in outcome { report.note(url, answer) }
        }
        return report
    }

    /// The texts differ (docs/conformance/marmot.md): by `push-v1` owners say where their server listens, and
    /// its own list counts where none has.
    private func needsList(_ tokens: [GossipToken]) -> Bool {
        tokens.contains { GossipProfile($0.format) != .pushV1 || $0.relayHint == nil }
    }

    // MARK: making

    private func triggers(
        _ server: XOnlyKey, _ tokens: [GossipToken], _ hints: [String]
    ) async -> (triggers: [MarmotOrigin.Trigger], isWhole: Bool) {
        var directory = MarmotOrigin.Directory()
        directory.lists[server] = book.withLock { $0.list(of: server) }
        directory.fallbacks[server] = settings.builtIn[server]
        let relays = Set(hints + relays(of: server)).filter { dialled($0) != nil }
        directory.information = await information(relays)
        var random = SystemRandomNumberGenerator()
        // Fails only where a frame outgrew what was reckoned: then nothing was made.
        let made = try? MarmotOrigin(directory, seedPath: settings.seedPath)
            .notify(tokens, now: world.now(), using: &random)
        return (made?.triggers ?? [], made?.unreachable.isEmpty ?? false)
    }

    /// Where a server listens as far as it, or the app, says itself.
    private func relays(of server: XOnlyKey) -> [String] {
        book.withLock { $0.list(of: server)?.relays } ?? settings.builtIn[server] ?? []
    }

    /// Relays' documents, out of memory or from the relays.
    private func information(_ relays: Set<String>) async -> [String: RelayInformation] {
        guard let documents else { return [:] }
        var known: [String: RelayInformation] = [:]
        var unknown: [NostrRelay] = []
        let now = world.instant()
        for url in relays.sorted() {
            switch book.withLock({ $0.document(of: url, at: now) }) {
            case .some(let information): known[url] = information
            case nil: if let relay = dialled(url) { unknown.append(relay) }
            }
        }
        let fetched = await inTurns(unknown, PublishingLimits.publications) {
            ($0.url, await documents($0.address))
        }
        for (url, information) in fetched {
            known[url] = information
            book.withLock { $0.note(information, ofRelay: url, at: now) }
        }
        return known
    }

    // MARK: looking up

    /// Looks for a server's list, unless one is known that is fresh. Those who ask for the same at once share
    /// one look-up.
    func lookUp(_ server: XOnlyKey, _ hints: [String], isDoubted: Bool) async {
        let isDue = { self.book.withLock { $0.isDue(server, isDoubted: isDoubted, at: self.world.now()) } }
        guard isDue() else { return }
        await flights.share(server) {
            guard isDue() else { return }
            let places = self.settings.lookUp + self.relays(of: server) + hints
            let relays = self.unique(places).prefix(PublishingLimits.publications)
            let found = await self.line.lookUp(
                server, at: Array(relays), within: self.deadline(self.limits.lookUp))
            // Who is called off knows nothing.
            if found.list == nil, Task.isCancelled { return }
            let now = self.world.now()
            self.book.withLock {
                $0.note(found.list, isAnswered: found.isAnswered, of: server, at: now)
            }
        }
    }

    // MARK: publishing

    /// Publishes a trigger to all its relays. If none takes it, the server's list is looked up again, and it
    /// goes once more to those that have not been asked, and to those that may think better of it.
    private func publish(
        _ trigger: MarmotOrigin.Trigger, _ hints: [String]
    ) async -> [(url: String, answer: RelayAnswer)] {
        var answers = await publish(trigger.wrap, trigger.relays)
        guard !Task.isCancelled, !answers.contains(where: { $0.answer == .accepted }) else { return answers }
        let spread = Duration.milliseconds(world.random(below: limits.pause.wholeMilliseconds + 1))
        // Ends early only when the caller gives up.
        do { try await world.sleep(world.instant() + limits.pause + spread) } catch { return answers }
        await lookUp(trigger.server, hints, isDoubted: true)
        let asked = Dictionary(answers.map { ($0.url, $0.answer) }, uniquingKeysWith: { $1 })
        let again = (relays(of: trigger.server) + trigger.relays).filter { asked[$0]?.isOfAMoment ?? true }
        guard !again.isEmpty else { return answers }
        for (url, answer) in await publish(trigger.wrap, again) {
            if let at = answers.firstIndex(where: { $0.url == url }) {
                answers[at].answer = answer
            } else {
                answers.append((url, answer))
            }
        }
        return answers
    }

    private func publish(
        _ wrap: NostrEvent, _ urls: [String]
    ) async -> [(url: String, answer: RelayAnswer)] {
        let relays = Array(unique(urls).prefix(PublishingLimits.publications))
        let forbidden = urls.filter { dialled($0) == nil }.map { ($0, RelayAnswer.forbidden) }
        let span = settings.tor == nil ? limits.publication : limits.publicationByTor
        let outcomes = await line.publish(wrap, to: relays, within: span)
        let byTor = settings.tor != nil
        return zip(relays, outcomes).map { ($0.url, RelayAnswer($1, byTor: byTor)) } + forbidden
    }

    private func deadline(_ span: Duration) -> Duration {
        settings.tor == nil ? span : max(span, limits.publicationByTor)
    }

    // MARK: addresses

    /// Addresses that may be dialled, each once.
    private func unique(_ urls: [String]) -> [NostrRelay] {
        var seen: Set<String> = []
        return urls.filter { seen.insert($0).inserted }.compactMap { dialled($0) }
    }

    /// Anybody in a group can name a relay, and all the others' phones would go there: so not to their own
    /// networks, and not where anybody on the way reads along.
    private func dialled(_ url: String) -> NostrRelay? {
        guard let relay = try? NostrRelay(url) else { return nil }
        let address = relay.address
        if settings.lookUp.contains(url) || settings.builtIn.values.contains(where: { $0.contains(url) }) {
            return relay
        }
        if address.isOnion { return settings.tor == nil ? nil : relay }
        let isLocal = address.isLoopback || address.literal?.isGlobal == false
        if isLocal { return settings.reachesLocalRelays ? relay : nil }
        return address.isSecure ? relay : nil
    }
}
