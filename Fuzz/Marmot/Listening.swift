import Delivery
import MarmotPush
import NostrIngress
import PushModel
import Secp256k1Keys
import WebSocket

/// The machines that decide, in any order of what can come: a parser that reads well is no help where an
/// event traps anyone who takes it.
let listeningTargets: [String: Body] = [
    // One relay's state. A byte tells what comes, those behind it what it says and how much later.
    "nostr-relay-state": { bytes in
        var input = Input(bytes)
        let live = input.byte() & 1 == 0
        var state = RelayState(
            keys: [ours.publicKey.hex], backlog: live ? .live : .grace, limits: NostrLimits(),
            random: { .max }, prefix: { "p" })
        var now = ContinuousClock.now
        var last = "p-1"
        while !input.isOver {
            now += spans[Int(input.byte()) % spans.count]
            guard let event = input.event(last) else { continue }
            for action in state.take(event, at: now) {
                switch action {
                case .subscribe(let name, _):
                    precondition(name.utf8.count <= MarmotLimits.subscriptionCharacters)
                    last = name
                case .deliver(let event, let standing):
                    precondition(event.kind == NostrKind.giftWrap)
                    if case .missed(let away) = standing { precondition(away >= .zero) }
                default: break
                }
            }
        }
    }
]

private let spans: [Duration] = [
    .zero, .milliseconds(300), .seconds(1), .seconds(2), .seconds(10), .seconds(60), .seconds(601),
    .seconds(3_600)
]
private let ours = pair(3)
private let wrap = NostrEvent.rumor(
    kind: NostrKind.giftWrap, createdAt: 1, tags: [["p", ours.publicKey.hex]], content: Secret([]),
    author: ours.publicKey)

private func pair(_ byte: UInt8) -> Secp256k1KeyPair {
    do { return try Secp256k1KeyPair(secret: Secret([UInt8](repeating: byte, count: 32))) } catch {
        preconditionFailure("a small number is a scalar")
    }
}

/// The input, a byte or a text at a time; zeros and empty texts when it is over.
struct Input {
    private let bytes: UnsafeRawBufferPointer
    private var at = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isOver: Bool { at >= bytes.count }

    mutating func byte() -> UInt8 {
        guard !isOver else { return 0 }
        defer { at += 1 }
        return bytes[at]
    }

    /// As many bytes as the next one says, up to 31; a length of 0 stands for the usual.
    mutating func text(or usual: String) -> String {
        let count = min(Int(byte() & 31), bytes.count - at)
        guard count > 0 else { return usual }
        defer { at += count }
        return String(decoding: bytes[at..<at + count], as: UTF8.self)
    }

    /// As many bytes as the next two say, up to 1,023.
    mutating func raw() -> [UInt8] {
        let count = min(Int(byte() & 3) << 8 | Int(byte()), bytes.count - at)
        defer { at += count }
        return Array(bytes[at..<at + count])
    }
}

extension Input {
    fileprivate mutating func event(_ subscription: String) -> RelayState.Event? {
        let id = [UInt8](repeating: byte() & 3, count: 32)
        switch byte() % 15 {
        case 0: return .start
        case 1: return .connected
        case 2: return .ended(nil)
        case 3: return .ended(.unreachable)
        case 4: return .babble
        case 5: return .authenticating([id])
        case 6: return .publishing([id])
        case 7: return .listChanged
        case 8: return .tick
        case 9: return .said(.event(subscription: text(or: subscription), wrap))
        case 10: return .said(.ok(id: id, isAccepted: byte() & 1 == 0, text: text(or: "auth-required: x")))
        case 11: return .said(.endOfStored(subscription: text(or: subscription)))
        case 12: return .said(.closed(subscription: text(or: subscription), text: text(or: "error: x")))
        case 13: return .said(.notice(text: text(or: "x")))
        default: return .said(.challenge(text(or: "c")))
        }
    }
}
