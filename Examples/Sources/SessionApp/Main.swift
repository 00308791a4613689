import Foundation
import SessionPush

/// A phone in one process: it subscribes through an onion, hears nothing, tries again, and tells what is not
/// for it. What a push says is shown by `sealbell demo session`.
@main
struct SessionApp {
    static func main() throws {
        let now = UnixTime(seconds: Int64(Date().timeIntervalSince1970))
        // In an app: your relay's key.
        let onionKey = Secret([9] + [UInt8](repeating: 0, count: 31))
        var phone = try AccountWatch(host: "push.example.org", onionKey: onionKey)
        let token = String(repeating: "a5", count: 32)
        let seed = Secret((0..<32).map { _ in UInt8.random(in: 0...255) })
        try phone.start(token: token, seed: seed)

        let node = try OnionNode(ed25519: onionKey, x25519: onionKey)
        let requests = try phone.due(now: now, through: [node, node, node])
        guard requests.count == 1, let first = requests.first else { throw Failure("one call is due") }
        print("the phone posts \(first.request.body.count) bytes to \(first.request.path)")
        guard
            case .later(let next)? = phone.answered(
                first.call, first.request, status: nil, body: Secret([]), now: now
            ).first
        else { throw Failure("without an answer it is tried again") }
        print("nobody answers; it tries again in \(next.since(now).wholeMilliseconds) ms")

        // A phone that was restarted has what it kept.
        var restarted = try AccountWatch(
            host: "push.example.org", onionKey: onionKey, kept: phone.device.encoded())
        try restarted.start(token: token, seed: seed)
        guard try restarted.due(now: now, through: []).isEmpty,
            try restarted.due(now: next, through: []).first?.request.path == SessionServer.onionPath
        else { throw Failure("it goes on where it was") }
        do {
            _ = try restarted.action(for: Secret(#"{"aps":{}}"#.utf8), now: now)
        } catch let error as SessionError {
            return print("another notification: \(error.sentence)")
        }
        throw Failure("another notification was taken for one of Session's")
    }
}

/// What should have been so and was not; ends the program with a status other than 0.
struct Failure: Error {
    let text: String
    init(_ text: String) { self.text = text }
}
