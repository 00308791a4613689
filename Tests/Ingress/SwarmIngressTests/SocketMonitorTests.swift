import DialTesting
import MessageSockets
import PushModel
import Testing

/// Connections of one context share a thread, and so what holds it up.
@Suite("What is told of connections")
struct SocketMonitorTests {
    /// Long enough for any machine; only a thread that is held up for good takes so long.
    private static let tries = 120

    @Test("An event that nobody hears any more holds no other connection up")
    func unheard() throws {
        let context = MessageContext(sockets: 16)
        let good = try #require(MessageSocket(.reply, in: context))
        let endpoint = try #require(good.bind("tcp://127.0.0.1:*"))
        let port = try #require(endpoint.split(separator: ":").last.flatMap { Int($0) })
        let dead = try DeadAddress(.silent, port: port)
        let silent = "tcp://\(dead.address.text):\(port)"

        // Its attempt ends with an event, after its monitor.
        let first = try dealer(context)
        let unheard = try #require(first.monitor("first"))
        #expect(first.connect(silent))
        unheard.close()
        // The same attempt, made later.
        let second = try dealer(context)
        let heard = try #require(second.monitor("second"))
        #expect(second.connect(silent))
        let waking = try #require(WakeUp())
        let poll = try #require(SocketPoll(waking: waking))
        poll.add(heard.descriptor, 1)
        var event = heard.next()
        for _ in 0..<Self.tries where event == nil {
            _ = poll.wait(milliseconds: 1_000)
            event = heard.next()
        }
        withExtendedLifetime(dead) { #expect(event == .refused) }
    }

    private func dealer(_ context: MessageContext) throws -> MessageSocket {
        let socket = try #require(MessageSocket(.dealer, in: context))
        socket.set(.handshakeMilliseconds, 100)
        socket.set(.reconnectMilliseconds, -1)
        return socket
    }
}
