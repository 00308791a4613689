package import HTTP2Client
package import PushModel
import Synchronization

/// An access token as it goes into requests.
package struct FCMToken: Sendable {
    package let authorization: HTTP2Authorization
    /// Rises with each token of a credential.
    package let serial: Int
    /// It replaced a token that Google refused: if this one is refused too, the account is wrong.
    let replacesRefused: Bool
    let refreshAt: ContinuousClock.Instant
    let expiresAt: ContinuousClock.Instant
}

/// Why there is no access token.
package enum FCMCredentialFault: Error, Sendable, Hashable {
    /// The account, its key or our clock is wrong: the token service has said so several times in a row.
    case refused
    /// The token service cannot be reached or asks for time.
    case unavailable(after: Duration?)
}

/// A service account's access token: one for all lanes of the account, one refresh in flight, renewed at 80 %
/// of its life while the old one serves (docs/push-services.md §4.1).
package actor FCMCredential {
    /// After a fault, before the next try: full jitter under a doubling ceiling (docs/push-services.md §6).
    private static let backoffBase: Duration = .seconds(1)
    private static let backoffCap: Duration = .seconds(60)
    /// The number of refusals in a row that is believed: the first may be a stray.
    private static let believedRefusals = 3
    /// A token that would expire on its way is not sent.
    private static let leeway: Duration = .seconds(10)

    package nonisolated let account: FCMServiceAccount
    private let fetch: any WebFetch
    private let world: World
    private let journal: Journal
    private nonisolated let newest = Mutex<FCMToken?>(nil)

    private var refreshing = false
    private var waiting: [CheckedContinuation<Result<FCMToken, FCMCredentialFault>, Never>] = []
    private var serial = 0
    private var refused = false
    private var fault = FCMCredentialFault.unavailable(after: nil)
    private var faults = 0
    private var refusals = 0
    private var tryNotBefore: ContinuousClock.Instant?

    package init(account: FCMServiceAccount, fetch: any WebFetch, world: World, journal: Journal) {
        self.account = account
        self.fetch = fetch
        self.world = world
        self.journal = journal
    }

    /// The token to send with now: the one at hand, or a new one. Within the back-off after a fault the same
    /// fault is told again, without asking.
    package nonisolated func token() async throws(FCMCredentialFault) -> FCMToken {
        if let token = usable() { return token }
        return try await refreshed().get()
    }

    /// Renews ahead of time until cancelled, so that no push waits for a token.
    package nonisolated func keepFresh() async {
        while !Task.isCancelled {
            let due = newest.withLock { $0?.refreshAt }
            if let due, due > world.instant() {
                do { try await world.sleep(due) } catch { return }
            } else if case .failure = await refreshed() {
                do { try await world.sleep(await retryMoment()) } catch { return }
            }
        }
    }

    /// Google refuses the token. True when another may be tried; false when it had itself replaced a refused
    /// one.
    package func refused(_ token: FCMToken) -> Bool {
        guard token.serial == serial else { return true }
        newest.withLock { $0 = nil }
        refused = true
        return !token.replacesRefused
    }

    /// A request with that token was accepted: earlier refusals no longer count.
    package nonisolated func accepted(_ token: FCMToken) async {
        guard token.replacesRefused else { return }
        await settle(token)
    }

    private func settle(_ token: FCMToken) {
        guard token.serial == serial else { return }
        newest.withLock { $0 = $0.map { Self.settled($0) } }
    }

    private static func settled(_ token: FCMToken) -> FCMToken {
        FCMToken(
            authorization: token.authorization, serial: token.serial, replacesRefused: false,
            refreshAt: token.refreshAt, expiresAt: token.expiresAt)
    }

    private nonisolated func usable() -> FCMToken? {
        guard let token = newest.withLock({ $0 }), world.instant() < token.expiresAt else { return nil }
        return token
    }

    private func retryMoment() -> ContinuousClock.Instant {
        tryNotBefore ?? world.instant() + Self.backoffBase
    }

    /// Joins the refresh in flight, or makes it.
    private func refreshed() async -> Result<FCMToken, FCMCredentialFault> {
        if let token = usable(), token.refreshAt > world.instant() { return .success(token) }
        if refreshing { return await withCheckedContinuation { waiting.append($0) } }
        if let tryNotBefore, world.instant() < tryNotBefore {
            return usable().map { .success($0) } ?? .failure(fault)
        }
        refreshing = true
        let result = await ask()
        refreshing = false
        let waiters = waiting
        waiting = []
        for waiter in waiters { waiter.resume(returning: result) }
        return result
    }

    private func ask() async -> Result<FCMToken, FCMCredentialFault> {
        let started = world.instant()
        let granted: FCMAssertion.Granted
        do throws(WebError) {
            let answer = try await fetch.fetch(FCMAssertion.request(for: account, now: world.now()))
            granted = FCMAssertion.read(answer, now: world.now())
        } catch {
            journal.note("fcm token service unreachable", [.code: ErrorCode(error)], level: .warning)
            granted = .later(nil)
        }
        switch granted {
        case .token(let secret, let lifetime):
            serial += 1
            let token = FCMToken(
                authorization: HTTP2Authorization(scheme: "Bearer", token: secret), serial: serial,
                replacesRefused: refused, refreshAt: started + lifetime * 0.8,
                expiresAt: started + max(lifetime - Self.leeway, lifetime / 2))
            newest.withLock { $0 = token }
            (refused, faults, refusals, tryNotBefore) = (false, 0, 0, nil)
            return .success(token)
        case .refused:
            refusals += 1
            let isBelieved = refusals >= Self.believedRefusals
            journal.note(
                "fcm service account refused", [.count: refusals], level: isBelieved ? .error : .warning)
            return .failure(backOff(isBelieved ? .refused : .unavailable(after: nil), floor: nil))
        case .later(let after):
            return .failure(backOff(.unavailable(after: after), floor: after))
        }
    }

    private func backOff(_ fault: FCMCredentialFault, floor: Duration?) -> FCMCredentialFault {
        let ceiling = Self.backoffBase.doubled(faults, atMost: Self.backoffCap)
        let jittered = Duration.milliseconds(world.random(below: max(1, ceiling.wholeMilliseconds)))
        faults += 1
        self.fault = fault
        tryNotBefore = world.instant() + max(jittered, floor ?? .zero)
        return fault
    }
}
