public import PushModel
import WireFormats

/// What is to be taken back for an account that has left the phone: at the server, then at the proxy (§3.4).
public struct Unregistration: Sendable {
    enum Stage: String, Sendable { case atServer, atProxy }

    let serverURL: String
    let authorization: Secret
    let userAgent: String
    let proxyUserAgent: String
    let registration: DeviceRegistration
    let since: UnixTime
    var stage = Stage.atServer
    var failures = 0
    var notBefore = UnixTime.distantPast

    var call: NextcloudCall {
        switch stage {
        case .atServer:
            .ocs(
                "DELETE", serverURL + NextcloudPaths.push + "?format=json", authorization: authorization,
                userAgent: userAgent, type: nil, body: Secret([]))
        case .atProxy:
            .proxyForm("DELETE", registration.proxyServer, userAgent: proxyUserAgent, registration.proof)
        }
    }
}

/// Accounts that have left the phone and are still registered somewhere: without this, their pushes keep
/// coming. Calls that find no network are made again later, after a restart too.
///
/// A state machine: ``next(now:)`` says which calls to make, ``settle(_:_:now:using:)`` takes their
/// answers, and ``encoded()`` is to be kept after each of them, where the app keeps passwords.
public struct Unregistrations: Sendable {
    /// One request to make.
    public struct Call: Sendable {
        /// For ``Unregistrations/settle(_:_:now:using:)``.
        public let id: UInt64
        public let request: NextcloudCall
    }

    private struct Item: Sendable {
        let id: UInt64
        var work: Unregistration
        var isUnderWay = false
    }

    private var items: [Item] = []
    private var nextID: UInt64 = 1

    public init() {}

    /// How many accounts there are.
    public var count: Int { items.count }

    /// Beyond ``NextcloudLimits/unregistrations`` the oldest is given up.
    public mutating func add(_ work: Unregistration) {
        items.append(Item(id: nextID, work: work))
        nextID += 1
        if items.count > NextcloudLimits.unregistrations { items.removeFirst() }
    }

    /// The account has registered anew under the same identifier: nothing of it is to be taken back.
    public mutating func cancel(_ registration: DeviceRegistration) {
        items.removeAll { $0.work.registration.deviceIdentifier == registration.deviceIdentifier }
    }

    /// Calls to make now. Those that are a month old are given up.
    public mutating func next(now: UnixTime) -> [Call] {
        items.removeAll { !$0.isUnderWay && now.since($0.work.since) >= NextcloudLimits.unregistrationLife }
        var calls: [Call] = []
        for place in items.indices where !items[place].isUnderWay && items[place].work.notBefore <= now {
            items[place].isUnderWay = true
            calls.append(Call(id: items[place].id, request: items[place].work.call))
        }
        return calls
    }

    /// When ``next(now:)`` has something again; `nil` when nothing waits for time.
    public var nextDeadline: UnixTime? { items.filter { !$0.isUnderWay }.map(\.work.notBefore).min() }

    /// Takes the answer to a call. Whatever the server says, the proxy is next, even where the app password
    /// is gone already; whatever the proxy says ends it.
    public mutating func settle(
        _ id: UInt64, _ answer: NextcloudAnswer, now: UnixTime,
        using generator: inout some RandomNumberGenerator
    ) {
        guard let place = items.firstIndex(where: { $0.id == id && $0.isUnderWay }) else { return }
        items[place].isUnderWay = false
        if answer.mayPass {
            items[place].work.failures = min(items[place].work.failures, NextcloudBackoff.countedFailures) + 1
            items[place].work.notBefore =
                now
                + NextcloudBackoff.pause(
                    failures: items[place].work.failures, asked: answer.pause(now: now), using: &generator)
        } else if items[place].work.stage == .atServer {
            items[place].work.stage = .atProxy
            items[place].work.failures = 0
            items[place].work.notBefore = now
        } else {
            items.remove(at: place)
        }
    }

    // MARK: keeping

    /// What to keep over a restart. It holds app passwords.
    public func encoded() -> Secret { KeptRows.write(items.map { Self.row($0.work) }) }

    /// - Throws: `.malformedRow` for what ``encoded()`` has not written.
    public init(decoding kept: Secret) throws(NextcloudError) {
        guard let rows = KeptRows.read(kept, atMost: NextcloudLimits.keptBytes) else {
            throw NextcloudError(.malformedRow)
        }
        for row in rows.suffix(NextcloudLimits.unregistrations) { add(try Self.work(row)) }
    }

    private static func row(_ work: Unregistration) -> [Secret] {
        let texts = [
            work.serverURL, work.userAgent, work.proxyUserAgent, String(work.since.milliseconds),
            work.stage.rawValue, String(work.failures), String(work.notBefore.milliseconds)
        ]
        return texts.map { Secret($0.utf8) } + [work.authorization, work.registration.encoded()]
    }

    private static func work(_ row: [Secret]) throws(NextcloudError) -> Unregistration {
        guard row.count == 9, let since = Int64(row[3].word),
            let stage = Unregistration.Stage(rawValue: row[4].word), let failures = Int(row[5].word),
            failures >= 0, let notBefore = Int64(row[6].word)
        else { throw NextcloudError(.malformedRow) }
        return Unregistration(
            serverURL: row[0].word, authorization: row[7], userAgent: row[1].word,
            proxyUserAgent: row[2].word, registration: try DeviceRegistration(decoding: row[8]),
            since: UnixTime(milliseconds: since), stage: stage, failures: failures,
            notBefore: UnixTime(milliseconds: notBefore))
    }
}
