import PushModel
import StatusPush
import WireFormats

/// An external gorush, which has the apps' credentials: deployed servers push through one.
///
/// Nothing is owed for what it was given. What it refuses, and what it does not answer for in time, has
/// failed: the sender hears so, and asks again, here or at another server.
struct GorushGateway: Sendable {
    private let url: String
    private let web: any WebFetch
    private let deadline: Duration

    /// What became of one handover.
    enum Outcome: String, Sendable, Hashable, CaseIterable {
        case taken
        /// It named some, or all, in its `logs`.
        case refused
        /// Another status than 2xx, or an answer that is none of gorush's.
        case failed
        case unreachable
    }

    /// More than a thousand entries of `logs`, each with a token and an error's text.
    private static let answerBytes = 8 << 20

    /// - Parameter url: without a slash at its end.
    init(url: String, web: any WebFetch, deadline: Duration) {
        self.url = url + "/api/push"
        self.web = web
        self.deadline = deadline
    }

    /// Gives pushes to gorush: all at once, in calls of as many as it takes.
    ///
    /// - Returns: the places of those that failed, and what became of each call.
    func send(_ pushes: [GatewayHandover.Push]) async -> (failed: Set<Int>, outcomes: [Outcome]) {
        let starts = stride(from: 0, to: pushes.count, by: StatusLimits.gatewayPushes)
        let calls = starts.map { $0..<min($0 + StatusLimits.gatewayPushes, pushes.count) }
        return await withTaskGroup(of: (Range<Int>, Set<Int>, Outcome).self) { group in
            for call in calls {
                group.addTask {
                    let (failed, outcome) = await self.call(pushes[call])
                    return (call, failed, outcome)
                }
            }
            var failed: Set<Int> = []
            var outcomes: [Outcome] = []
            for await (_, places, outcome) in group {
                failed.formUnion(places)
                outcomes.append(outcome)
            }
            return (failed, outcomes)
        }
    }

    private func call(_ pushes: ArraySlice<GatewayHandover.Push>) async -> (Set<Int>, Outcome) {
        let all = Set(pushes.indices)
        let answer: WebAnswer
        do throws(WebError) {
            var request = WebRequest(
                .post, url: url, headers: [("Content-Type", "application/json")], body: Self.body(pushes),
                answerLimitBytes: Self.answerBytes, deadline: deadline, publicAddressesOnly: false)
            request.keepsConnection = true
            answer = try await web.fetch(request)
        } catch {
            return (all, .unreachable)
        }
        guard (200...299).contains(answer.status), let failures = Failures(answer.body) else {
            return (all, .failed)
        }
        let failed = failures.places(in: pushes)
        return (failed, failed.isEmpty ? .taken : .refused)
    }

    private static func body(_ pushes: ArraySlice<GatewayHandover.Push>) -> Secret {
        var writer = JSONWriter(reserving: 64 + pushes.reduce(0) { $0 + 1 + $1.notification.count })
        writer.beginObject()
        writer.key("notifications")
        writer.beginArray()
        for push in pushes { push.notification.reveal { writer.raw($0) } }
        writer.endArray()
        writer.endObject()
        return writer.takeSecret()
    }

    /// What `logs` says, where each entry is a failure, and `counts`: what gorush drops, as all for a
    /// platform that is switched off there, it tells by a lower count alone.
    private struct Failures {
        private struct Entry {
            var id: Int?
            var token: Secret?
        }

        private var entries: [Entry] = []
        /// How many tokens it took, or more: one with an APNs topic counts twice.
        private var count: Int64?

        /// `nil` for what is no answer of gorush's.
        init?(_ body: Secret) {
            // The reason may be the answer's own text.
            guard let (entries, count) = body.reveal({ try? Self.read($0) }) else { return nil }
            (self.entries, self.count) = (entries, count)
        }

        private static func read(
            _ body: UnsafeRawBufferPointer
        ) throws(FormatError) -> (entries: [Entry], count: Int64?)? {
            var entries: [Entry] = []
            var count: Int64?
            var isAnswer = false
            var reader = JSONReader(body)
            try reader.beginObject()
            while let name = try reader.nextMember() {
                if name.equals("logs"), try reader.peek() == .array {
                    isAnswer = true
                    try reader.beginArray()
                    while try reader.nextElement() { entries.append(try entry(&reader)) }
                } else if name.equals("counts"), try reader.peek() == .number {
                    // Enough for an answer, where gorush writes `logs` as null.
                    isAnswer = true
                    count = try reader.readNumber().int64
                } else {
                    try reader.skipValue()
                }
            }
            try reader.end()
            return isAnswer ? (entries, count) : nil
        }

        private static func entry(_ reader: inout JSONReader) throws(FormatError) -> Entry {
            var entry = Entry()
            try reader.beginObject()
            while let name = try reader.nextMember() {
                let isText = try reader.peek() == .string
                if isText, name.equals("notif_id") {
                    entry.id = Int(try reader.readString().string())
                } else if isText, name.equals("token") {
                    entry.token = try reader.readString().secret()
                } else {
                    try reader.skipValue()
                }
            }
            return entry
        }

        /// Which of a call's pushes failed. An entry that fits none of them, as when gorush hides tokens,
        /// stands for any: then nothing is known of all. So it is where too few were counted.
        func places(in pushes: ArraySlice<GatewayHandover.Push>) -> Set<Int> {
            if let count, count < pushes.count { return Set(pushes.indices) }
            var places: Set<Int> = []
            for entry in entries {
                if let id = entry.id, pushes.indices.contains(id) {
                    places.insert(id)
                    continue
                }
                let fitting = pushes.indices.filter { place in
                    entry.token.map { $0 == pushes[place].token } ?? false
                }
                if fitting.isEmpty { return Set(pushes.indices) }
                places.formUnion(fitting)
            }
            return places
        }
    }
}
