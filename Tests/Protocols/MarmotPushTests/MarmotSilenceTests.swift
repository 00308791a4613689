import MarmotPush
import PushModel
import Testing

@Suite("Marmot with an app that does not answer", .timeLimit(.minutes(30)))
struct MarmotSilenceTests {
    @Test("What an app never answers is said again after an hour, so that a logout holds no device for ever")
    func silent() throws {
        var group = try KitGroup(.pushV1)
        try group.start()
        try group.work()
        try group.members[0].device.use(token: nil)
        let isRemoval = { (call: Call) in
            String(decoding: call.rumor ?? [], as: UTF8.self).contains(#""kind":449"#)
        }
        let lost = group.due(0).filter(isRemoval)
        group.now = group.now + .seconds(3_599)
        #expect(lost.count == 1 && group.due(0).filter(isRemoval).isEmpty)
        group.now = group.now + .seconds(1)
        #expect(try #require(group.members[0].device.nextDue) <= group.now)
        let again = group.due(0).filter(isRemoval)
        #expect(again.map(\.rumor) == lost.map(\.rumor))
        for call in lost { group.answer(.taken, call, 0) }
        #expect(!group.members[0].device.isGone)
        for call in again { group.answer(.taken, call, 0) }
        #expect(group.members[0].device.isGone)
    }
}
