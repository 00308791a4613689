import Foundation
import MarmotPublishing
import Simulators

/// Bob writes into a group, and Alice's phone is woken.
///
/// Without arguments, in one process: the relay is simulated, and the server's part is played. With the path
/// of `run.json` of `sealbell serve --sandbox` and a device token in hex: by the server that runs there.
@main
struct MarmotApp {
    static func main() async throws {
        let words = Array(CommandLine.arguments.dropFirst())
        switch words.count {
        case 0: try await inOneProcess()
        case 2: try await Sandbox.play(words[0], token: words[1])
        default: throw Failure("nothing is given, or run.json and a token")
        }
    }

    private static func inOneProcess() async throws {
        // The relay stands for the one at which the server listens, and the server says so there.
        let server = try Members.newPair()
        let relay = NostrRelaySimulator()
        try await relay.start()
        guard let inbox = relay.url else { throw Failure("the relay listens") }
        relay.inject(
            RelayList.event(
                relays: [inbox], at: Int64(Date().timeIntervalSince1970), by: server,
                auxiliary: [UInt8](repeating: 0, count: 32)))
        let publisher = try GroupNotifications.makePublisher(
            relays: [inbox], server: server.publicKey, inbox: inbox, throughTor: false, keeping: nil)
        let token = [UInt8](repeating: 0xA1, count: 32)
        let members = try await Members(
            server: server.publicKey, inbox: inbox, tokenOfAlice: token, publisher: publisher)

        try await members.wakeOthers()
        let wraps = relay.events.filter { $0.kind == NostrKind.giftWrap }
        guard let wrap = wraps.first, wraps.count == 1 else { throw Failure("there is one trigger") }
        print("Bob's trigger, an event of kind \(wrap.kind), is at \(inbox)")

        // The server opens it. Decoys open for nobody.
        let opened = try GiftWrap.unwrap(wrap, with: server)
        let content = try TriggerContent(reading: opened.event)
        let woken = content.chunks.compactMap { try? TokenBox.decrypt($0, content.format, with: server) }
        print("the server finds \(content.count) tokens, of which \(woken.count) open")
        guard woken.count == 1, woken[0].platform == .apns, woken[0].token == Secret(token) else {
            throw Failure("Alice's phone is to be woken, and nobody else's")
        }
        print("Alice's phone wakes and fetches what is new")

        // The relay goes away: Bob's app is told, and can show it.
        await relay.stop()
        var shown: [String] = []
        do throws(Unreached) { try await members.wakeOthers() } catch {
            shown = error.servers.compactMap(\.sentence)
        }
        guard let sentence = shown.first else { throw Failure("Bob is to hear that nobody was woken") }
        print("and without the relay: \(sentence)")
    }
}
