package import PushModel
import SealbellKit
import Synchronization

/// One lane of an origin's calls: to its relay, or to proxies. It has no queue, count of tries or breaker;
/// lanes have. It is not a ``DirectProvider``: there is a relay in between, so it cannot lease volatile
/// pushes.
package struct UplinkProvider: Provider {
    /// The right to have one more call under way.
    package struct Slot: SendSlot {
        fileprivate let room: Room
        package func release() { room.giveBack() }
    }

    package let lane: LaneName
    private let web: any WebFetch
    private let office: any UplinkOffice
    private let room: Room
    private let world: World

    /// Calls under way at once in a lane: half of the connections that a relay of the usual kind takes from
    /// one server, so that two lanes have room beside each other.
    package static let callsAtOnce = 32
    /// A relay answers a notification after three seconds at the latest; this gives a stalled server time to
    /// continue.
    package static let deadline = Duration.seconds(30)
    /// The largest answer that means something lists 1,000 ids of 20 digits.
    package static let answerBytes = 256 << 10

    /// - Parameter web: the network, or the entry of a relay in this process.
    package init(lane: LaneName, web: any WebFetch, office: any UplinkOffice, world: World) {
        self.lane = lane
        self.web = web
        self.office = office
        self.world = world
        room = Room(Self.callsAtOnce)
    }

    package func run() async throws {}

    package func reserve() async throws(CancellationError) -> Slot {
        while !room.take() {
            await room.bell.wait()
            if Task.isCancelled { throw CancellationError() }
        }
        return Slot(room: room)
    }

    package func send(_ leased: LeasedPush, on slot: Slot) async -> Answer {
        // If a stop cancels the call, it counts as unanswered and is made again.
        defer { slot.release() }
        guard let message = leased.push.message.uplink else {
            return Answer(.rejected, .unknown, sentAt: world.now(), fate: .local)
        }
        let request: WebRequest
        switch await office.leave(of: message) {
        case .granted(let fields, let isPeers, let server):
            let place = message.server.isEmpty ? server : message.server
            request = self.request(message, at: place, fields, isPeers)
        case .void: return Answer(.rejected, .custodyEnded, sentAt: world.now(), fate: .local)
        case .later:
            return Answer(.retry(after: nil), .noStoreForAnswer, sentAt: world.now(), fate: .local)
        }
        // Another process may make the call by now.
        guard world.instant() < leased.sendBefore else {
            return Answer(.retry(after: nil), .leaseRanOut, sentAt: world.now(), fate: .unprocessed)
        }
        let sentAt = world.now()
        let (answer, fault) = await fetch(request)
        let verdict = await office.take(answer, to: message, of: leased.push.sentAs)
        return Self.judge(verdict, fault, sentAt: sentAt)
    }

    private func fetch(_ request: WebRequest) async -> (CallAnswer, WebError?) {
        do throws(WebError) {
            let answer = try await web.fetch(request)
            return (.http(status: answer.status, retryAfter: answer.retryAfter, body: answer.body), nil)
        } catch {
            return (.none, error)
        }
    }

    private func request(
        _ message: UplinkMessage, at server: String, _ headers: [(name: String, value: String)],
        _ isPeers: Bool
    ) -> WebRequest {
        let method: WebRequest.Method =
            switch message.method {
            case .get: .get
            case .post: .post
            case .delete: .delete
            }
        let path = message.path.reveal { String(decoding: $0, as: UTF8.self) }
        let type = message.contentType.isEmpty ? [] : [(name: "Content-Type", value: message.contentType)]
        var request = WebRequest(
            method, url: server + path, headers: headers + type,
            body: message.body.count == 0 ? nil : message.body, answerLimitBytes: Self.answerBytes,
            deadline: Self.deadline, publicAddressesOnly: isPeers)
        // All calls may be repeated, because a relay recognises them.
        request.mayRepeat = true
        request.keepsConnection = true
        return request
    }

    /// After a fault of the network the call counts as unprocessed, even if it may have been processed: a
    /// repeat does no harm, and a call of unknown fate would be given up after a few sends.
    private static func judge(_ verdict: UplinkVerdict, _ fault: WebError?, sentAt: UnixTime) -> Answer {
        switch verdict {
        case .done: Answer(.accepted, .ok, sentAt: sentAt)
        case .refused: Answer(.rejected, .callRefused, sentAt: sentAt)
        case .callerRefused: Answer(.misconfigured(.credential), .callerRefused, sentAt: sentAt)
        case .uncommitted: Answer(.retry(after: nil), .noStoreForAnswer, sentAt: sentAt, fate: .local)
        case .again(let after, let blames):
            switch fault?.code {
            case nil:
                Answer(.retry(after: after), blames ? .serverAsksForTime : .callPutOff, sentAt: sentAt)
            case .deadlineExceeded:
                Answer(.retry(after: after), .deadlineExceeded, sentAt: sentAt, fate: .unprocessed)
            case .some: Answer(.retry(after: after), .notReached, sentAt: sentAt, fate: .unprocessed)
            }
        }
    }
}

/// How many calls may be under way yet.
private final class Room: Sendable {
    let bell = Bell()
    private let free: Mutex<Int>

    init(_ calls: Int) { free = Mutex(calls) }

    func take() -> Bool {
        free.withLock { free in
            guard free > 0 else { return false }
            free -= 1
            return true
        }
    }

    func giveBack() {
        free.withLock { $0 += 1 }
        bell.ring()
    }
}
