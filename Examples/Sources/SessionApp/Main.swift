import AppSupport
import Foundation
import SessionPush
import Synchronization

/// A phone in one process: it subscribes through an onion, hears nothing, tries again later, and opens a
/// push. A relay that answers is in `sealbell demo session`.
@main
struct SessionApp {
    static func main() async throws {
        let keychain = Keychain()
        keychain.save(Frozen.kept)
        let network = NoNetwork()
        let watch = try AccountWatch(
            kept: keychain.load(), save: keychain.save, send: { network.send($0) })
        let key = Secret([9] + [UInt8](repeating: 0, count: 31))
        let path = try (1...3).map {
            try OnionNode(address: "https://192.0.2.\($0):22021", ed25519: key, x25519: key)
        }
        let token = [UInt8](repeating: 0xA5, count: 32)
        try await watch.start(token: token, seed: Frozen.seed, path: path)
        guard network.asked == ["https://192.0.2.1:22021/onion_req/v2"] else {
            throw Failure("one call is due")
        }
        print("the phone posts to \(network.asked[0])")
        let status = await watch.phone.device.status(at: now())
        guard status.state == .pending, status.advice == .retrying,
            let next = await watch.phone.device.nextDue
        else { throw Failure("without an answer it is tried again") }
        print("nobody answers; it tries again in \(next.since(now()).wholeMilliseconds) ms")

        // A phone that was restarted has what it kept, and waits as long.
        let restarted = try AccountWatch(
            kept: keychain.load(), save: keychain.save, send: { network.send($0) })
        try await restarted.start(token: token, seed: Frozen.seed, path: path)
        guard network.asked.count == 1 else { throw Failure("it goes on where it was") }

        let push = try Delivered(data: Frozen.push)
        guard let kept = keychain.load(), let message = try AccountWatch.message(push, kept: kept),
            let data = message.data,
            data.reveal({ String(decoding: $0, as: UTF8.self) }) == Frozen.text
        else { throw Failure("it says what was sent") }
        print("the extension opens it: \(data.count) bytes of \(message.hash)")
        let delivered = Secret(try JSONSerialization.data(withJSONObject: Frozen.push))
        try LeftPhone(kept: kept, push: delivered).writeIfWanted("session")
        await restarted.stored(message)
        guard let stored = keychain.load(), try AccountWatch.message(push, kept: stored) == nil else {
            throw Failure("a repeat is not shown")
        }
        do throws(DeviceError) {
            let other = try Delivered(userInfo: ["aps": [String: Any]()])
            _ = try await restarted.phone.device.open(other, at: now())
        } catch {
            return print("another notification: \(error.sentence)")
        }
        throw Failure("another notification was taken for one of Session's")
    }
}

/// A network in which nobody answers.
final class NoNetwork: Sendable {
    private let calls = Mutex<[String]>([])
    var asked: [String] { calls.withLock(\.self) }
    func send(_ call: Call) -> CallAnswer {
        calls.withLock { $0.append(call.http?.url ?? "") }
        return .none
    }
}

/// What should have been so and was not; ends the program with a status other than 0.
struct Failure: Error {
    let text: String
    init(_ text: String) { self.text = text }
}
