import Foundation
import StatusPush

/// A phone in one process: it registers at a server that does not answer, tries again, and tells what is not
/// for it.
@main
struct StatusApp {
    static func main() throws {
        let now = UnixTime(seconds: Int64(Date().timeIntervalSince1970))
        let key = try Secp256k1KeyPair(secret: Secret((0..<32).map { _ in UInt8.random(in: 1...254) }))
        // In an app: your server's key.
        let server = try Secp256k1KeyPair(secret: Secret([UInt8](repeating: 7, count: 32))).point
        let token = String(repeating: "a5", count: 32)
        var phone = try AccountPush(key: key, chatKey: key)
        try phone.start(token: token, servers: [server], settings: StatusSettings())
        guard phone.due(now: now).messages.isEmpty else { throw Failure("nothing is sent unasked") }
        phone.choose(receiving: true, sending: false)
        guard let first = phone.due(now: now).messages.first else { throw Failure("one message is due") }
        print("the phone publishes \(first.payload.count) bytes on \(first.contentTopic)")
        guard let next = phone.nextDeadline, phone.due(now: now).messages.isEmpty else {
            throw Failure("without an answer it is tried again")
        }
        print("nobody answers; it tries again in \(next.since(now).wholeMilliseconds) ms")

        // A phone that was restarted has what it kept.
        let kept = (phone.device.encoded(), phone.inbox.encoded(), phone.origin.encoded())
        var restarted = try AccountPush(key: key, chatKey: key, kept: kept)
        try restarted.start(token: token, servers: [server], settings: StatusSettings())
        guard restarted.due(now: now).messages.isEmpty, restarted.due(now: next).messages.count == 1 else {
            throw Failure("it goes on where it was")
        }
        do {
            try restarted.tell(server, of: Secret([1]), text: Secret("hello".utf8), now: now)
        } catch let error as StatusError {
            print("not sent: \(error.sentence)")
        }
        do {
            _ = try restarted.action(for: Secret(#"{"aps":{}}"#.utf8), chats: [])
        } catch let error as StatusError {
            return print("another notification: \(error.sentence)")
        }
        throw Failure("another notification was taken for one of Status's")
    }
}

/// What should have been so and was not; ends the program with a status other than 0.
struct Failure: Error {
    let text: String
    init(_ text: String) { self.text = text }
}
