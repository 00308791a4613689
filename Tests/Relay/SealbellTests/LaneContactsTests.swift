import AdminIngress
@testable import Delivery
import PushModel
import Testing

@testable import RelayProgram

@Suite("Push services that no connection comes about to")
struct LaneContactsTests {
    @Test("Failures without an open connection are told after the span; ends and idleness are not")
    func table() throws {
        let lane = LaneName(
            app: try #require(ConfiguredName("acme")), service: .apns, environment: .production)
        let start = ContinuousClock.now
        var contacts = LaneContacts()
        func told(_ seconds: Int, open: Int, failed: Int) -> Bool {
            var snapshot = LaneSnapshot(
                lane: lane, isHalted: false, haltedFor: nil, reason: nil, inMemory: 0, parked: 0,
                inFlight: 0, isUnanswered: false)
            snapshot.figures = [
                .gauge("sealbell_push_connections", open),
                .total("sealbell_push_connections_failed_total", failed)
            ]
            return contacts.look([snapshot], after: .seconds(60), at: start + .seconds(seconds)) == [lane]
        }
        #expect(!told(0, open: 0, failed: 0), "nobody has wanted one")
        #expect(!told(100, open: 0, failed: 0))
        #expect(!told(200, open: 0, failed: 1))
        #expect(!told(259, open: 0, failed: 4))
        #expect(told(260, open: 0, failed: 4))
        #expect(told(400, open: 0, failed: 9))
        #expect(!told(405, open: 1, failed: 9))
        #expect(!told(500, open: 0, failed: 9), "the service has ended it, and nobody wants another")
        #expect(!told(600, open: 0, failed: 10))
        #expect(!told(650, open: 0, failed: 2), "another lane of the name")
        #expect(!told(655, open: 0, failed: 3))
        #expect(told(720, open: 0, failed: 3))
        #expect(contacts.look([], after: .seconds(60), at: start + .seconds(900)).isEmpty)
    }

    @Test("A lane counts as open only while it has a connection")
    func contact() throws {
        let lane = LaneName(
            app: try #require(ConfiguredName("acme")), service: .apns, environment: .production)
        var snapshot = LaneSnapshot(
            lane: lane, isHalted: false, haltedFor: nil, reason: nil, inMemory: 0, parked: 0, inFlight: 0,
            isUnanswered: false)
        #expect(snapshot.contact == .ready && snapshot.connections == nil, "nobody counts")
        for (open, opened, failed, state) in [
            (0, 0, 0, LaneReport.State.untried), (1, 1, 0, .open), (2, 3, 9, .open), (0, 1, 0, .idle),
            (0, 1, 4, .idle), (0, 0, 1, .unreachable)
        ] {
            snapshot.figures = [
                .gauge("sealbell_push_connections", open),
                .total("sealbell_push_connections_opened_total", opened),
                .total("sealbell_push_connections_failed_total", failed)
            ]
            #expect(snapshot.contact == state && snapshot.connections == open, "\(open) \(opened) \(failed)")
        }
    }
}
