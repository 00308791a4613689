import PushModel
import StatusPush
import WakuIngress

/// What a Waku node's REST interface answers, and the link that follows from it, in any order of what can
/// come.
let nodeAnswerTargets: [String: Body] = [
    "status-node-messages": { bytes in
        let body = Secret(copying: bytes)
        guard let all = try? NodeReader.messages(body, wants: { _ in true }) else { return }
        precondition(all.messages.count + all.foreign + all.malformed <= all.heard)
        for (message, topic) in all.messages {
            precondition(WakuTopic.id(ofContentTopic: message.contentTopic) == topic)
            precondition((1...WakuLimits.payloadBytes).contains(message.payload.count))
            precondition(message.meta.count <= WakuLimits.metaBytes)
            judge(message, topic)
        }
        guard let none = try? NodeReader.messages(body, wants: { _ in false }) else {
            preconditionFailure("what is wanted does not decide what is an answer")
        }
        precondition(none.messages.isEmpty && none.malformed <= all.malformed && none.heard == all.heard)
        precondition(none.isCut == all.isCut)
    },
    "status-node-page": { bytes in
        guard let page = try? NodeReader.page(Secret(copying: bytes), wants: { $0 & 1 == 0 }) else { return }
        precondition(page.batch.messages.allSatisfy { $0.topic & 1 == 0 } && !page.batch.isCut)
        precondition((page.cursor?.utf8.count ?? 1) > 0)
    },
    "status-node-health": { bytes in _ = NodeReader.health(Secret(copying: bytes)) },
    "status-node-link": { bytes in playLink(bytes) }
]

/// What is written is read again.
private func judge(_ message: WakuMessage, _ topic: UInt32) {
    let written = WakuCalls.json(message).reveal { Secret([0x5B] + Array($0) + [0x5D]) }
    guard let again = try? NodeReader.messages(written, wants: { $0 == topic }).messages.first?.message else {
        preconditionFailure("a message that was read is written as one")
    }
    precondition(again.payload == message.payload && again.meta == message.meta)
    precondition(again.timestamp == message.timestamp && again.version == message.version)
    let topic = WakuMessage.pubsubTopic
    precondition(again.hash(pubsubTopic: topic) == message.hash(pubsubTopic: topic))
}

/// A byte for each answer: to what was asked for, whatever that is.
private func playLink(_ bytes: UnsafeRawBufferPointer) {
    let start = UnixTime(seconds: 1_000_000)
    var state = LinkState(limits: WakuLimits(), since: start)
    var now = start
    var wasListening = false
    // As long as the longest answer since the last fault may be a full cache, each time.
    var longest = WakuLimits.leastCache
    for byte in bytes {
        now = now + .seconds(1)
        let fault: NodeFault? =
            switch byte & 7 {
            case 0: .unreachable
            case 1: .overdue
            case 2: .malformed
            case 3: .tooLarge
            case 4: .status(404, retryAfter: nil)
            case 5: .status(400 + Int(byte >> 3), retryAfter: .seconds(Int64(byte)))
            case 6: .status(500, retryAfter: nil)
            default: nil
            }
        let step: LinkState.Step
        var count: Int?
        switch state.duty {
        case .leave: step = state.left()
        case .subscribe: step = state.subscribed(fault, random: UInt64(byte) << 56)
        case .poll:
            let outcome: LinkState.Outcome =
                fault.map { .failed($0) } ?? (byte & 8 == 0 ? .whole(Int(byte)) : .cut)
            if case .whole(let heard) = outcome { count = heard }
            step = state.polled(outcome, begunAt: now, random: UInt64(byte) << 56)
        }
        precondition(step.rest.map { $0 > .zero && $0 <= .seconds(65) } ?? true, "waits are bounded")
        precondition(step.gapSince.map { $0 <= now && state.isListening } ?? true)
        precondition(step.notes.count <= 2)
        if let count, count >= longest { precondition(step.gapSince != nil, "a cache may have overflowed") }
        longest = state.isListening ? max(longest, count ?? 0) : WakuLimits.leastCache
        if state.isListening, !wasListening { precondition(step.notes.contains(.listening)) }
        if state.isListening { precondition(state.duty == .poll) }
        wasListening = state.isListening
    }
}
