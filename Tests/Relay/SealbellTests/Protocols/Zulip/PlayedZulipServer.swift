import Foundation
import HTTPIngress
import PushModel
import PushTesting
import Synchronization
import WireFormats

@testable import RelayProgram

/// A Zulip server of the specification's own profile that answers as a test says.
final class PlayedZulipServer: HTTPFace {
    let name = configured("zulip")
    let routes = [HTTPRoute(.prefix("/"), bodyLimitBytes: 1 << 16)]

    struct Script {
        /// Answers to polls, in order; then the key is not good any more.
        var polls: [(status: Int, body: String)] = []
        /// The entry of what was registered last.
        var shown = #"{"status":"active"}"#
        var knowsUsers = true
        /// `push_account_id` of each registration.
        var registered: [String] = []
        var queues = 0
        /// Queues that were closed.
        var closed = 0
        /// Keys of the relay that phones named.
        var bouncerKeys: [String] = []
    }

    let script = Mutex(Script())

    func respond(to inbound: HTTPInbound) async -> HTTPOutbound {
        let (status, body) = script.withLock { answer(inbound, &$0) }
        return HTTPOutbound(status, .json, Array(body.utf8))
    }

    private func answer(_ inbound: HTTPInbound, _ script: inout Script) -> (Int, String) {
        let success = #""result":"success","msg":"""#
        switch (inbound.method, inbound.path) {
        case (.get, "/api/v1/server_settings"):
            let realm = #""realm_url":"https://chat.example.org""#
            return (200, "{\(success),\(realm),\"encrypted_push_notifications\":true}")
        case (.get, "/api/v1/users/me") where script.knowsUsers: return (200, "{\(success),\"user_id\":7}")
        case (.post, "/api/v1/mobile_push/register"):
            let form = try? Form.parse(inbound.withBody { Array($0) })
            script.registered.append(form?.text("push_account_id") ?? "")
            script.bouncerKeys.append(form?.text("bouncer_public_key") ?? "")
            return (200, "{\(success)}")
        case (.post, "/api/v1/register"):
            script.queues += 1
            let entry = script.registered.last.map { "\"\($0)\":\(script.shown)" } ?? ""
            let state = "\"push_account_ids\":{\(entry)},\"last_event_id\":-1"
            return (200, "{\(success),\"queue_id\":\"q\(script.queues)\",\(state)}")
        case (.get, "/api/v1/events"):
            guard !script.polls.isEmpty else {
                return (401, #"{"result":"error","msg":"","code":"UNAUTHORIZED"}"#)
            }
            let (status, body) = script.polls.removeFirst()
            return (status, body.replacing("$ID", with: script.registered.last ?? ""))
        case (.delete, "/api/v1/events"):
            script.closed += 1
            return (200, "{\(success)}")
        default: return (404, #"{"result":"error","msg":"","code":"BAD_REQUEST"}"#)
        }
    }

    /// Serves on a free port, and gives `body` its address.
    static func serving(_ body: (PlayedZulipServer, String) async throws -> Void) async throws {
        let server = PlayedZulipServer()
        try await server.serving { port in try await body(server, "http://127.0.0.1:\(port)") }
    }
}
