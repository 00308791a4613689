import AppSupport
import Foundation
import StatusPush
import Synchronization

/// A phone in one process: it registers at a server that does not answer, goes on where it was after a
/// restart, opens a push that a sandbox once delivered, and tells what is not for it.
@main
struct StatusApp {
    static func main() async throws {
        let vector = try Vector.read()
        let (keychain, node) = (Keychain(), Node())
        let account = try AccountPush(
            chatKey: vector.chatKey, servers: [RelayKey(text: vector.server)],
            installationID: vector.installationID, kept: nil, save: keychain.save, send: node.send)
        try await account.start(
            token: .apns(hex: String(repeating: "a5", count: 32)), settings: StatusSettings())
        guard let follow = node.follows.first, node.published.count == 1 else {
            throw Failure("it follows its topics, and publishes a registration")
        }
        print("the phone follows two topics, and publishes on \(node.published[0].contentTopic)")
        let noise = WakuMessage(payload: Secret([1, 2, 3]), contentTopic: vector.server, timestamp: 0)
        await account.heard(noise, for: follow)
        let status = await account.phone.device.status(at: now())
        guard status.state == .pending, status.isQuiet, node.published.count == 1 else {
            throw Failure("it waits for the server")
        }

        // A phone that was restarted has what it kept, and tells the server nothing twice.
        let restarted = try AccountPush(
            chatKey: vector.chatKey, servers: [RelayKey(text: vector.server)], kept: keychain.kept,
            save: keychain.save, send: node.send)
        try await restarted.start(
            token: .apns(hex: String(repeating: "A5", count: 32)), settings: StatusSettings())
        guard node.follows.count == 2, node.published.count == 1 else {
            throw Failure("it goes on where it was")
        }

        let chats = [Secret("another chat".utf8), Secret(vector.chat.utf8)]
        let message = try restarted.text(of: vector.delivered, kept: keychain.kept, chats: chats)
        let text = message?.content.map { $0.reveal { String(decoding: $0, as: UTF8.self) } }
        guard let message, text == vector.text, message.chat != nil else { throw Failure("it opens") }
        print("the push says: \(vector.text)")
        await restarted.stored(message)
        guard try restarted.text(of: vector.delivered, kept: keychain.kept, chats: chats) == nil else {
            throw Failure("a repeat is ignored")
        }
        do {
            _ = try restarted.text(of: Delivered(userInfo: ["aps": [:]]), kept: keychain.kept, chats: [])
            throw Failure("another notification was taken for one of Status's")
        } catch let error as DeviceError {
            print("another notification: \(error.sentence)")
        }
        guard let author = message.author else { throw Failure("somebody has sealed it") }
        try await send(to: author, vector)
        let isGone = try await restarted.stop()
        print(isGone ? "nobody has it" : "the server is told to forget it, \(node.published.count) messages")
    }

    /// Somebody whom no store and no server knows: their contact code is looked for, and servers are asked.
    private static func send(to person: PublicPoint, _ vector: Vector) async throws {
        let (keychain, node) = (Keychain(), Node())
        let sending = try AccountSending(
            chatKey: vector.chatKey, kept: nil, save: keychain.save, send: node.send,
            settled: { print("\($0.reached) phones have it") })
        do {
            _ = try await sending.tell(person, of: Secret([1]), text: Secret("hello".utf8))
            throw Failure("nothing is sent unasked")
        } catch let error as DeviceError {
            print("not sent: \(error.sentence)")
        }
        await sending.choose(sending: true)
        _ = try await sending.tell(person, of: Secret([1]), text: Secret("hello".utf8))
        guard node.histories.count == 1, node.published.count == 1, node.follows.count == 2 else {
            throw Failure("a contact code is looked for, and servers are asked")
        }
        guard await sending.origin.origin.nextDue != nil else { throw Failure("it waits for servers") }
        let kept = keychain.kept
        _ = try AccountSending(
            chatKey: vector.chatKey, kept: kept, save: keychain.save, send: node.send, settled: { _ in })
        print("servers are asked on \(node.published[0].contentTopic)")
    }
}

/// In an app: the system's keychain.
final class Keychain: Sendable {
    private let text = Mutex<Secret?>(nil)
    var kept: Secret? { text.withLock { $0 } }
    @Sendable func save(_ kept: Secret) { text.withLock { $0 = kept } }
}

/// In an app: its Waku node. This one takes everything, and nobody is there.
final class Node: Sendable {
    private let calls = Mutex<[Call]>([])
    var follows: [Call] { calls.withLock { $0.filter(\.isStanding) } }
    var published: [WakuMessage] {
        calls.withLock { $0.compactMap { if case .publish(let message) = $0.way { message } else { nil } } }
    }
    var histories: [String] {
        calls.withLock { $0.compactMap { if case .history(let topic) = $0.way { topic } else { nil } } }
    }
    @Sendable func send(_ call: Call) async -> CallAnswer {
        calls.withLock { $0.append(call) }
        return .taken
    }
}

/// `Examples/Vectors/status.json`: a push, and the keys that it is for.
struct Vector {
    let chatKey: Secret
    let (installationID, server, chat, text): (String, String, String, String)
    let delivered: Delivered

    static func read() throws -> Vector {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let file = folder.appendingPathComponent("../../Vectors/status.json")
        let json = try JSONSerialization.jsonObject(with: Data(contentsOf: file))
        guard let members = json as? [String: Any], let key = members["key"] as? String,
            let installationID = members["installationID"] as? String,
            let server = members["server"] as? String, let chat = members["chat"] as? String,
            let text = members["text"] as? String, let push = members["delivered"] as? [String: Any]
        else { throw Failure("Examples/Vectors/status.json") }
        let digits = Array(key)
        let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(digits[$0...($0 + 1)]), radix: 16)
        }
        return Vector(
            chatKey: Secret(bytes), installationID: installationID, server: server, chat: chat, text: text,
            delivered: try Delivered(userInfo: push))
    }

    private init(
        chatKey: Secret, installationID: String, server: String, chat: String, text: String,
        delivered: Delivered
    ) {
        self.chatKey = chatKey
        (self.installationID, self.server, self.chat, self.text) = (installationID, server, chat, text)
        self.delivered = delivered
    }
}

/// What should have been so and was not; ends the program with a status other than 0.
struct Failure: Error {
    let text: String
    init(_ text: String) { self.text = text }
}
