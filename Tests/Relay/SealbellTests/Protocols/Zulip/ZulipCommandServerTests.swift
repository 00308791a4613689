import Foundation
import PushModel
import PushTesting
import Synchronization
import Testing
import WireFormats
import ZulipPush

@testable import RelayProgram

@Suite("A phone of Zulip on the command line, at a server that errs", .timeLimit(.minutes(30)))
struct ZulipCommandServerTests {
    private static let bouncer = Base64.text([UInt8](repeating: 9, count: 32))
    private static let other = Base64.text([UInt8](repeating: 11, count: 32))

    private func join(_ person: ZulipPerson, _ url: String, _ more: String...) async -> CommandRun {
        await person.run(
            "join", url,
            arguments: ["--user", "ada@example.org", "--key", "k", "--app-id", "org.acme.chat"] + more)
    }

    @Test("It opens another queue, outlasts answers that are none, and registers again what was lost")
    func listening() async throws {
        try await PlayedZulipServer.serving { server, url in
            let person = try ZulipPerson()
            #expect(await join(person, url, "--bouncer-key", Self.bouncer).status == .done)
            server.script.withLock { script in
                script.polls = [
                    (400, #"{"result":"error","msg":"","code":"BAD_EVENT_QUEUE_ID"}"#),
                    (200, "<html>"),
                    (
                        200,
                        #"{"result":"success","events":[{"type":"push_account","op":"remove","id":3,"#
                            + #""push_account_id":$ID,"error_code":"REQUEST_EXPIRED"}]}"#
                    )
                ]
            }
            let run = await person.run("listen")
            // Then the key is not good any more, which ends it.
            #expect(run.status == .failed && run.err == ["The server does not take this user's key."])
            #expect(
                run.out == [
                    "active: Notifications are set up.",
                    "the server has closed the event queue; opens another",
                    "the server does not answer; tries again", "registration: HTTP 200",
                    // The state beside another queue shows what no event tells.
                    "active: Your login is no longer valid. Log in again to receive notifications."
                ])
            let registered = server.script.withLock(\.registered)
            #expect(registered.count == 2 && Set(registered).count == 1, "the same id")
            // Of join, of listen, the one in place of that which the server had closed, and the one that was
            // opened when it had registered again.
            #expect(server.script.withLock { $0.queues == 4 && $0.closed == 3 })
        }
    }

    @Test("A relay's key that is refused for good asks for another app, which registers at once")
    func updates() async throws {
        try await PlayedZulipServer.serving { server, url in
            let person = try ZulipPerson()
            #expect(await join(person, url, "--bouncer-key", Self.bouncer).status == .done)
            server.script.withLock {
                $0.shown = #"{"status":"failed","error_code":"INVALID_BOUNCER_PUBLIC_KEY"}"#
            }
            let status = await person.run("status")
            #expect(status.out.contains("  code INVALID_BOUNCER_PUBLIC_KEY"), "\(status)")
            #expect(status.out.contains("  " + ZulipWords.sentence(.updateApp, isActive: false)))
            #expect(status.out.last?.contains("--bouncer-key KEY") == true)
            let again = await person.run("repeat")
            #expect(again.status == .failed && again.out.contains { $0.hasPrefix("nothing was told") })
            #expect(server.script.withLock(\.registered).count == 1)

            server.script.withLock { $0.shown = #"{"status":"active"}"# }
            let updated = await person.run("join", url, "--bouncer-key", Self.other)
            #expect(updated.status == .done, "\(updated)")
            #expect(server.script.withLock(\.bouncerKeys) == [Self.bouncer, Self.other])
        }
    }

    @Test("At a server that does not say who its users are, the person does")
    func userID() async throws {
        try await PlayedZulipServer.serving { server, url in
            server.script.withLock { $0.knowsUsers = false }
            let person = try ZulipPerson()
            let without = await join(person, url, "--bouncer-key", Self.bouncer)
            #expect(without.status == .usage)
            #expect(without.err == ["server: HTTP 404 when asked who this is: give --user-id."])
            let named = await join(person, url, "--bouncer-key", Self.bouncer, "--user-id", "7")
            #expect(named.status == .done, "\(named)")
        }
    }

    @Test("Each advice has the guide's sentence")
    func sentences() throws {
        let page = try String(
            contentsOf: repositoryRoot().appending(path: "docs/guides/zulip.md"), encoding: .utf8)
        let rows = page.split(separator: "\n").filter { $0.hasPrefix("| `") }
        func isThere(_ word: String, _ sentence: String) -> Bool {
            rows.contains { $0.hasPrefix("| `\(word)` |") && $0.contains(sentence) }
        }
        for advice in ZulipStatus.Advice.allCases {
            for isActive in [true, false] {
                let sentence = ZulipWords.sentence(advice, isActive: isActive)
                #expect(isThere(advice.rawValue, sentence), "\(sentence)")
            }
        }
    }

    @Test("A sender's text does not steer the terminal")
    func terminal() {
        let message = ZulipMessage(
            id: 5, time: 1, content: "a\u{1B}[2Jb\nc\u{202E}d", senderID: 8, senderName: "Ia\u{7}go",
            senderAvatarURL: "", recipient: .direct(userIDs: [7, 8]))
        let notification = ZulipNotification(
            realmURL: "https://chat.example.org", realmName: nil, userID: 7, body: .message(message))
        #expect(ZulipWords.text(notification) == "message 5, Ia go: a [2Jb c d")
    }
}
