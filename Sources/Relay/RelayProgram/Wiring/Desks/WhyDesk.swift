import AdminIngress
import AtRest
import Delivery
import HTTPIngress
import PushModel
import WireFormats

/// `GET /why?push=UUID` at the admin listener: the way of one push, without content, token or origin.
///
/// What is known stands in two places: the row, while the push is owed, and the answers that this process
/// remembers. Everything else is said to be unknown. Times are milliseconds of Unix time.
struct WhyDesk: Sendable {
    static let path = "/why"

    let trail: AttemptTrail
    let store: OpenStore
    let startedAt: UnixTime

    var calls: [AdminCall] { [.desk(Self.path, takesBody: false, why)] }

    private func why(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        guard let reference = inbound.members["push"].flatMap({ PushID(text: $0.lowercased()) }) else {
            throw .status(400, "A reference is the UUID of a push: its apns-id, or what test-push printed.")
        }
        let id = store.sealed.row(sentAs: reference)
        let row = try await stored { () throws(StoreError) in try await store.lookup.owed(id) }
        let found = trail.find(id)
        return JSONWriter.object { json in
            json.member("push", reference.text)
            json.member("accepted_at", id.acceptedAt.milliseconds)
            json.object("owed", row, Self.write)
            json.objects("answers", found.attempts, Self.write)
            json.member("running_since", startedAt.milliseconds)
            Self.write("acceptances_since", found.acceptancesSince, &json)
            Self.write("faults_since", found.faultsSince, &json)
        }
    }

    private static func write(_ name: StaticString, _ time: UnixTime?, _ json: inout JSONWriter) {
        json.key(name)
        if let time { json.int(time.milliseconds) } else { json.null() }
    }

    private static func write(_ row: StoredPush, _ json: inout JSONWriter) {
        json.key("lane")
        // A lane's text is our own configuration's.
        json.string(row.lane)
        json.member("class", "\(row.pushClass)")
        json.member("attempts", Int64(Attempts(stored: row.attempt).made))
        write("not_before", row.notBefore, &json)
        write("custody_ends", row.custodyEnds, &json)
        json.member("place", row.parked ? "store" : "memory")
    }

    private static func write(_ attempt: Attempt, _ json: inout JSONWriter) {
        json.member("lane", attempt.lane.description)
        json.member("number", Int64(attempt.number))
        write("sent_at", attempt.sentAt, &json)
        write("answered_at", attempt.answeredAt, &json)
        json.member("outcome", attempt.outcome.label)
        json.member("reason", attempt.reason.rawValue)
        json.key("next")
        switch attempt.next {
        case .ended: json.string("ended")
        case .again: json.string("again")
        case .waits: json.string("waits")
        case .elsewhere: json.string("elsewhere")
        }
        if case .again(let at) = attempt.next { write("not_before", at, &json) }
    }
}
