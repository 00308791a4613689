import Delivery
import HTTP2Client
import HTTPIngress
import NIOCore
import NostrIngress
import SwarmIngress
import WakuIngress
import WebClient
import WebSocket

@testable import RelayProgram

extension RelaySpans {
    /// Deadlines that only a peer which does not answer at all can miss, however starved the machine is. A
    /// test of a deadline sets that one by itself.
    static var patient: RelaySpans {
        let span = Duration.seconds(600)
        var spans = RelaySpans()
        spans.ingress.head = span
        spans.ingress.bodyGrace = span
        spans.ingress.answer = span
        spans.ingress.idle = span
        spans.ingress.linger = span
        spans.pushServices.requestDeadline = span
        spans.pushServices.connectDeadline = span
        spans.pushServices.pingAfterSilence = span
        spans.pushServices.pongDeadline = span
        spans.pushServices.proofDeadline = span
        spans.pushServices.backoffCap = .seconds(1)
        spans.nostr.endOfStored = span
        spans.nostr.listAnswer = span
        spans.nostrConnections.connectDeadline = span
        spans.nostrConnections.writeDeadline = span
        spans.nostrConnections.pingAfterSilence = span
        spans.nostrConnections.pongDeadline = span
        spans.swarm.dialDeadline = span
        spans.swarm.replyDeadline = span
        spans.swarm.heartbeatTimeout = span
        spans.swarm.ladder = [.milliseconds(200)]
        spans.swarm.daemonLadder = spans.swarm.ladder
        spans.swarm.handover = .seconds(1)
        spans.swarm.eagerRedial = .milliseconds(100)
        spans.swarm.lookEvery = .milliseconds(200)
        spans.swarm.shareEvery = .milliseconds(200)
        spans.swarm.tick = .milliseconds(20)
        spans.swarm.deafAfter = span
        spans.waku.callDeadline = span
        spans.waku.publishWithin = span
        spans.waku.backoff = Backoff(
            base: .milliseconds(50), cap: .milliseconds(200), floorCap: .milliseconds(200))
        spans.waku.storeRest = .milliseconds(100)
        spans.statusHost.lookEvery = .milliseconds(100)
        spans.statusHost.gateway = span
        spans.statusHost.report = span
        spans.zulipReply = span
        spans.nextcloudProof = span
        spans.watch.every = .milliseconds(50)
        spans.watch.patience = span
        spans.watch.calmFor = .milliseconds(200)
        return spans
    }
}

extension DeliveryLimits {
    /// The same for the core.
    static var patient: DeliveryLimits {
        var limits = DeliveryLimits()
        limits.requestDeadline = .seconds(600)
        limits.aliveFor = .seconds(1_800)
        limits.trialWait = .seconds(600)
        limits.volatileDrain = .seconds(60)
        limits.drain = .seconds(600)
        // Real back-off doubles from a second: six failures in a row, which chance brings, take a minute.
        limits.backoffBase = .milliseconds(50)
        limits.backoffCap = .milliseconds(400)
        limits.unknownBase = .milliseconds(100)
        limits.lateBase = .milliseconds(100)
        return limits
    }
}

extension LocalCall {
    /// To a relay of a test, which answers as late as the machine lets it.
    static let patience = TimeAmount.minutes(10)

    /// - Parameter authority: PEM.
    init?(patient url: String?, authority: String? = nil) {
        self.init(url: url ?? "", authority: authority.map { Array($0.utf8) }, deadline: Self.patience)
    }
}

extension Shell {
    /// Waits for answers of a test's relay as ``LocalCall/patience`` says.
    mutating func waitPatiently() { (patience, silence) = (LocalCall.patience, LocalCall.patience) }
}
