import MarmotPush
import PushModel
import Secp256k1Keys
import Synchronization
import WebSocket

/// Carries out what a ``MarmotOrigin`` wants done.
extension MarmotPublisher {
    private enum Happened: Sendable {
        case answered(Call, CallAnswer)
        case time(UnixTime)
    }

    /// Wakes phones, until each server has answered or the caller gives up.
    func work(_ tokens: [GossipToken]) async -> [WakeReport] {
        var random = SystemRandomNumberGenerator()
        var origin = MarmotOrigin(
            lookUp: settings.lookUp, builtIn: settings.builtIn, seedPath: settings.seedPath, using: &random)
        origin.pause = limits.pause
        // A new one has room but for more tokens than one wake takes.
        guard let id = try? origin.notify(tokens) else { return WakeReport.refused(tokens) }
        return await withTaskGroup(of: Happened.self) { group in
            var (now, alarm) = (world.now(), UnixTime?.none)
            while true {
                if Task.isCancelled { origin.end(id) }
                for call in due(&origin, now) {
                    let server = origin.lookUp(of: call)
                    group.addTask { .answered(call, await self.answer(call, server)) }
                }
                if let ended = origin.takeReports().first {
                    group.cancelAll()
                    return ended.reports
                }
                if let next = origin.nextDue, next != alarm {
                    alarm = next
                    let end = world.instant() + max(next.since(now), .zero)
                    group.addTask { [world] in
                        // Ends early only when the wake has ended.
                        try? await world.sleep(end)
                        return .time(next)
                    }
                }
                guard let happened = await group.next() else {
                    origin.end(id)
                    continue
                }
                switch happened {
                case .answered(let call, let answer):
                    now = world.now()
                    take(answer, to: call, &origin, now)
                // The pause is over, whatever the date is.
                case .time(let time): now = max(world.now(), time)
                }
            }
        }
    }

    // What one wake learns all others know.

    private func due(_ origin: inout MarmotOrigin, _ now: UnixTime) -> [Call] {
        cache.withLock { cache in
            origin.cache = cache
            defer { cache = origin.cache }
            return origin.due(at: now)
        }
    }

    private func take(_ answer: CallAnswer, to call: Call, _ origin: inout MarmotOrigin, _ now: UnixTime) {
        cache.withLock { cache in
            origin.cache = cache
            defer { cache = origin.cache }
            origin.answered(answer, to: call, at: now)
        }
    }

    // MARK: calls

    private func answer(
        _ call: Call, _ listing: (server: XOnlyKey, isDoubted: Bool)?
    ) async -> CallAnswer {
        switch call.way {
        case .http(let request): return await document(request)
        case .lookUp(_, let relays):
            guard let listing else { return .none }
            await lookUp(listing.server, relays, isDoubted: listing.isDoubted)
            return .taken
        case .event(let text, let relays):
            // The origin's own.
            guard let wrap = try? NostrEvent.parse(text) else { return .none }
            return .relays(await publish(wrap, relays))
        case .publish, .follow, .history, .say, .hear: return .none
        }
    }

    /// A relay's document, which is fetched over https; not with Tor, because that would go another way.
    private func document(_ request: HTTPCall) async -> CallAnswer {
        guard settings.tor == nil, let relay = dialled("wss" + request.url.dropFirst("https".count)),
            let answer = await RelayInformation.answer(of: relay.address, web, isStranger: isStranger)
        else { return .none }
        return .http(status: answer.status, body: answer.body)
    }

    /// Looks for a server's list, unless one is known that is fresh, and notes it. Those who ask for the same
    /// at once share one look-up.
    private func lookUp(_ server: XOnlyKey, _ relays: [String], isDoubted: Bool) async {
        let isDue = { self.cache.withLock { $0.isDue(server, isDoubted: isDoubted, at: self.world.now()) } }
        guard isDue() else { return }
        await flights.share(server) {
            guard isDue() else { return }
            let places = self.unique(relays).prefix(PublishingLimits.publications)
            let found = await self.line.lookUp(
                server, at: Array(places), within: self.deadline(self.limits.lookUp))
            // Who is called off knows nothing.
            if found.list == nil, Task.isCancelled { return }
            let now = self.world.now()
            self.cache.withLock {
                $0.note(found.list, isAnswered: found.isAnswered, of: server, at: now)
            }
        }
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
        // Which rule of addresses it breaks is of no matter.
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
