@testable import MarmotPush
import PushModel
import PushTesting
import Testing

@Suite("Marmot: records of a phone whose clock was wrong")
struct OwnRecordsTests {
    private static let hours = Duration.seconds(5 * 3_600)

    /// The date of all phones is set; instants go on.
    private static func set(_ crowd: Crowd, by span: Duration) {
        crowd.props.now = crowd.props.now.with(crowd.props.now.wall + span)
    }

    /// Gives records to everybody else, who may refuse them.
    private static func say(_ crowd: Crowd, _ events: [NostrEvent], from leaf: UInt32) {
        for event in events {
            for other in Crowd.leaves where other != leaf { _ = crowd.hear(other, event, from: leaf) }
        }
    }

    /// The device tokens of a leaf, as another one would wake it.
    private static func woken(_ crowd: Crowd, _ leaf: UInt32, by other: UInt32) throws -> [[UInt8]] {
        let member = crowd[other]
        return try member.device.tokens.live(in: member.view, at: crowd.props.now.wall)
            .filter { $0.leaf == leaf }
            .map { try TokenBox.decrypt($0.token.box, .pushV1, with: crowd.server).token.array }
    }

    private static func crowd(_ seed: UInt64) throws -> (Crowd, old: Secret, new: Secret) {
        let crowd = try Crowd(.pushV1, seed: seed)
        for leaf in Crowd.leaves where leaf != 0 { try crowd.join(leaf) }
        let (old, new) = (crowd.props.bytes(32), crowd.props.bytes(32))
        try crowd.join(0, token: old)
        // Answers to what the others asked when they joined.
        crowd.props.pass(.seconds(3))
        _ = crowd.due(0)
        return (crowd, old, new)
    }

    @Test("A token that a clock hours ahead has dated is told anew once the clock is right, once")
    func ahead() throws {
        let (crowd, old, new) = try Self.crowd(51)
        Self.set(crowd, by: Self.hours)
        let early = try crowd.register(0, DeviceTarget(.apns, token: new), .started).events
        Self.set(crowd, by: .zero - Self.hours)
        Self.say(crowd, early, from: 0)
        #expect(try Self.woken(crowd, 0, by: 5) == [old.array], "of the future")

        crowd.props.pass(.seconds(60))
        let again = try crowd.register(0, DeviceTarget(.apns, token: new), .started).events
        Self.say(crowd, again + crowd.due(0).events, from: 0)
        for other in Crowd.leaves where other != 0 {
            #expect(try Self.woken(crowd, 0, by: other) == [new.array])
        }
        #expect(crowd.due(0).events.isEmpty)
        crowd.props.pass(.seconds(60))
        #expect(crowd.due(0).events.isEmpty && crowd[0].device.tokens.leaves[0]?.records.count == 1)

        // Once its own stamp is of now, one greater than all goes to everybody.
        crowd.props.pass(Self.hours - .seconds(3_600))
        let last = crowd.due(0).events
        #expect(last.count == 1)
        try crowd.spread(last, from: 0)
        let records = Crowd.leaves.map { crowd[$0].device.tokens.leaves[0]?.records.map(\.ownerTimestamp) }
        #expect(Set(records).count == 1, "all have the same")
        #expect(crowd.due(0).events.isEmpty)
    }

    @Test("A phone whose clock was hours ahead is taken back by those who have its earlier token")
    func takenBack() throws {
        let (crowd, old, new) = try Self.crowd(52)
        Self.set(crowd, by: Self.hours)
        _ = try crowd.register(0, DeviceTarget(.apns, token: new), .started)
        Self.set(crowd, by: .zero - Self.hours)
        crowd.props.pass(.seconds(60))
        #expect(try Self.woken(crowd, 0, by: 5) == [old.array])
        Self.say(crowd, crowd.optOut(0).events, from: 0)
        for other in Crowd.leaves where other != 0 { #expect(try Self.woken(crowd, 0, by: other).isEmpty) }
        #expect(crowd.due(0).events.isEmpty)
    }

    @Test("A clock that is hours behind keeps nobody from a new token")
    func behind() throws {
        let (crowd, _, new) = try Self.crowd(53)
        Self.set(crowd, by: .zero - Self.hours)
        let late = try crowd.register(0, DeviceTarget(.apns, token: new), .started).events
        #expect(crowd.due(0).events.isEmpty)
        Self.set(crowd, by: Self.hours)
        crowd.props.pass(.seconds(60))
        Self.say(crowd, late, from: 0)
        for other in Crowd.leaves where other != 0 {
            #expect(try Self.woken(crowd, 0, by: other) == [new.array])
        }
    }

    @Test("A clock that was years ahead leads to no more records than one that was hours ahead")
    func years() throws {
        let (crowd, _, new) = try Self.crowd(54)
        Self.set(crowd, by: .seconds(3 * 366 * 86_400))
        _ = try crowd.register(0, DeviceTarget(.apns, token: new), .started)
        Self.set(crowd, by: .zero - .seconds(3 * 366 * 86_400))
        Self.say(crowd, crowd.due(0).events, from: 0)
        for other in Crowd.leaves where other != 0 {
            #expect(try Self.woken(crowd, 0, by: other) == [new.array])
        }
        for _ in 0..<24 {
            crowd.props.pass(.seconds(86_400))
            #expect(crowd.due(0).events.isEmpty)
        }
    }
}
