import PushModel
import Synchronization
import WireFormats
import ZulipPush

/// The relay as an origin meets it: it registers phones, takes notifications, and lists the dead; on bad days
/// it does not answer, answers late, loses answers, asks for time, or answers with what is no answer.
///
/// It opens no blob: a played phone's has its number, version and quality in clear.
final class PlayedRelay: WebFetch {
    /// Percent of calls, each drawn by itself.
    struct Mood: Sendable {
        var unreachable = 0
        var lost = 0
        var busy = 0
        var refusing = 0
        var foreign = 0
        var latency = Duration.milliseconds(1) ... .milliseconds(20)
    }

    /// What a played phone seals.
    struct Blob: Sendable, Hashable {
        let phone: Int
        let version: Int
        /// The relay refuses it for good.
        let isBad: Bool

        /// Canonical Base64 of more bytes than a sealed box needs.
        var text: String {
            let plain = "\(phone).\(version).\(isBad ? "bad" : "good")"
            return Base64.text(Array((plain + String(repeating: " ", count: 80 - plain.utf8.count)).utf8))
        }

        init(phone: Int, version: Int, isBad: Bool) {
            (self.phone, self.version, self.isBad) = (phone, version, isBad)
        }

        init?(_ text: [UInt8]) {
            // Nothing else is sealed here, and what is no blob of a played phone is none.
            let decoded = try? withBytes(text) { (bytes) throws(FormatError) in try Base64.decode(bytes) }
            guard let plain = decoded else { return nil }
            let words = String(decoding: plain, as: UTF8.self).split { $0 == "." || $0 == " " }
            guard words.count == 3, let phone = Int(words[0]), let version = Int(words[1]) else { return nil }
            self.init(phone: phone, version: version, isBad: words[2] == "bad")
        }
    }

    private struct Known {
        var version: Int
        var isAlive: Bool
    }

    private struct State {
        var mood: Mood?
        /// By what the relay calls a phone: a token id or a number, both as text.
        var known: [String: Known] = [:]
        var delivered: [String: Int] = [:]
    }

    private let scheduler: Scheduler
    private let ledger: OriginLedger
    private let state = Mutex(State())

    init(_ scheduler: Scheduler, _ ledger: OriginLedger) {
        (self.scheduler, self.ledger) = (scheduler, ledger)
    }

    func turn(_ mood: Mood?) {
        ledger.happened("the relay's mood is \(mood.map { "\($0)" } ?? "good")")
        state.withLock { $0.mood = mood }
    }

    /// The push service no longer knows that phone's token.
    func end(_ name: String) {
        ledger.happened("\(name) dies at its push service")
        state.withLock { $0.known[name]?.isAlive = false }
    }

    /// Notifications that went to its push service.
    func delivered(to name: String) -> Int { state.withLock { $0.delivered[name] ?? 0 } }

    /// The number that the relay gives an account of that phone.
    static func number(of phone: Int) -> Int64 { 1 << 40 | Int64(phone + 1) }

    func fetch(_ request: WebRequest) async throws(WebError) -> WebAnswer {
        let mood = state.withLock { $0.mood ?? Mood() }
        await scheduler.pause(mood.latency)
        if scheduler.chance(mood.unreachable) { throw WebError(.unreachable) }
        if scheduler.chance(mood.busy) {
            let wait = scheduler.chance(50) ? String(scheduler.random(in: 0...120)) : nil
            return answer(scheduler.chance(50) ? 429 : 503, #"{"result":"error","msg":""}"#, wait)
        }
        if scheduler.chance(mood.refusing) {
            return answer(401, #"{"result":"error","msg":"","code":"UNAUTHORIZED"}"#)
        }
        if scheduler.chance(mood.foreign) { return answer(200, "<html>a proxy's page</html>") }
        let made = take(request)
        if scheduler.chance(mood.lost) {
            await scheduler.pause(.seconds(1) ... .seconds(30))
            throw WebError(scheduler.chance(50) ? .deadlineExceeded : .unreachable)
        }
        return made
    }

    private func answer(_ status: Int, _ body: String, _ retryAfter: String? = nil) -> WebAnswer {
        WebAnswer(status: status, retryAfter: retryAfter, body: Secret(body.utf8))
    }

    private func take(_ request: WebRequest) -> WebAnswer {
        if request.url.contains(ZulipPath.staleDevices.rawValue) { return staleList() }
        let body = request.body?.reveal { Array($0) } ?? []
        return request.url.hasSuffix(ZulipPath.register.rawValue) ? register(body) : notify(body)
    }

    private func register(_ body: [UInt8]) -> WebAnswer {
        // What cannot be read is refused.
        guard let form = try? withBytes(body, { (bytes) throws(FormatError) in try Form.parse(bytes) }),
            let blob = form["encrypted_push_registration"].flatMap({ Blob($0) })
        else { return answer(400, #"{"result":"error","msg":"","code":"BAD_REQUEST"}"#) }
        ledger.happened("the relay is asked to register phone \(blob.phone) version \(blob.version)")
        if blob.isBad {
            return answer(400, #"{"result":"error","msg":"","code":"INVALID_BOUNCER_PUBLIC_KEY"}"#)
        }
        let token = form["token_id"].map { String(decoding: $0, as: UTF8.self) }
        let name = token ?? String(Self.number(of: blob.phone))
        state.withLock { state in
            // An older one is no news, and revives nothing.
            guard state.known[name].map({ $0.version < blob.version }) ?? true else { return }
            state.known[name] = Known(version: blob.version, isAlive: true)
        }
        let number = token == nil ? #","device_id":\#(name)"# : ""
        return answer(200, #"{"result":"success","msg":""\#(number)}"#)
    }

    private func notify(_ body: [UInt8]) -> WebAnswer {
        // The same.
        guard let call = try? JSONValue.parse(body), let items = call["push_requests"]?.array else {
            return answer(400, #"{"result":"error","msg":"","code":"BAD_REQUEST"}"#)
        }
        var (sent, tokens, numbers) = (0, [String](), [String]())
        for item in items {
            let token = item["token_id"]?.string
            guard let name = token ?? item["device_id"]?.int64.map({ String($0) }) else { continue }
            let isAlive = state.withLock { state in
                guard state.known[name]?.isAlive ?? false else { return false }
                state.delivered[name, default: 0] += 1
                return true
            }
            if isAlive {
                sent += 1
            } else if token == nil {
                numbers.append(name)
            } else {
                tokens.append("\"\(name)\"")
            }
        }
        let (deadTokens, deadNumbers) = (tokens.joined(separator: ","), numbers.joined(separator: ","))
        return answer(
            200,
            #"{"result":"success","msg":"","apple_successfully_sent_count":\#(sent),"#
                + #""android_successfully_sent_count":0,"delete_token_ids":[\#(deadTokens)],"#
                + #""delete_device_ids":[\#(deadNumbers)]}"#)
    }

    private func staleList() -> WebAnswer {
        let dead = state.withLock { state in
            state.known.filter { !$0.value.isAlive }.keys.compactMap { Int64($0) }.sorted()
        }
        let list = dead.map(String.init).joined(separator: ",")
        return answer(200, #"{"result":"success","msg":"","device_ids":[\#(list)],"next_after":null}"#)
    }
}
