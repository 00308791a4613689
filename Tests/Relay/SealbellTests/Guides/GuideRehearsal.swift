import Foundation
import PushTesting
import Testing

@testable import RelayProgram

/// One page, done step by step.
final class GuideRehearsal {
    /// What is to be done with the next thing that the page asks for, or between two of them.
    struct Step {
        /// How what stands on the page begins; `nil`: between two things.
        let begins: String?
        let act: (GuideRehearsal, GuidePage.Item?) async throws -> Void
    }

    let place: GuidePlace
    let page: GuidePage
    /// The reader's own values, in place of what the page has for them.
    var filled: [String: String] = [:]
    /// What the last command said, and all of them so far.
    private(set) var said = ""
    private(set) var all = ""
    private var count = 0
    /// What the reader's shell has kept of earlier commands: its directory and its mask.
    private var kept: [String] = []

    private init(_ page: GuidePage, _ place: GuidePlace) { (self.page, self.place) = (page, place) }

    /// Does the whole page; everything that the page asks for is in the plan, and in its order.
    ///
    /// - Returns: how many commands ran.
    @discardableResult
    static func of(_ name: String, _ steps: [Step]) async throws -> Int {
        let rehearsal = GuideRehearsal(try GuidePage(name), try await GuidePlace())
        let result: Result<Void, any Error>
        do { result = .success(try await rehearsal.follow(steps)) } catch { result = .failure(error) }
        await rehearsal.place.end()
        try result.get()
        return rehearsal.count
    }

    private func follow(_ steps: [Step]) async throws {
        let own = steps.compactMap(\.begins)
        let run = page.items.compactMap { if case .line(let text) = $0 { text } else { nil } } + own
        var left = steps[...]
        for item in page.items {
            while let step = left.first, step.begins == nil {
                left.removeFirst()
                try await step.act(self, nil)
            }
            if let step = left.first, let begins = step.begins, item.text.hasPrefix(begins) {
                left.removeFirst()
                try await step.act(self, item)
            } else if case .inline(let text) = item, page.isNamed(text, among: run) {
                continue
            } else {
                Issue.record("\(page.name) asks for what no test does here: \(item.text)")
                return
            }
        }
        for step in left {
            #expect(step.begins == nil, "\(page.name) no longer has \(step.begins ?? "")")
            if step.begins == nil { try await step.act(self, nil) }
        }
    }

    /// The command as the reader of this place types it.
    func command(_ text: String) -> String {
        filled.sorted { $0.key.count > $1.key.count }.reduce(text) { $0.replacing($1.key, with: $1.value) }
    }

    /// Runs a command and keeps what it said.
    func run(_ text: String, _ status: Int32, input: String? = nil) async throws {
        let typed = kept + [command(text) + (input.map { " < " + $0 } ?? "")]
        let ended = try await place.run(typed.joined(separator: "\n"))
        count += 1
        said = ended.said
        all += said
        #expect(ended.status == status, "\(page.name): \(command(text))\n\(said)")
    }

    /// Runs a command that changes the reader's shell, for all that run after it.
    func keep(_ text: String) async throws {
        try await run(text, 0)
        kept.append(command(text))
    }

    /// Runs a command that fails in the words that the page has for it.
    ///
    /// - Parameter code: the code of the error, which both have in brackets.
    func fails(_ text: String, _ status: Int32, _ words: String, code: String? = nil) async throws {
        let all = [words] + (code.map { ["[\($0)]"] } ?? [])
        for one in all { #expect(page.text.contains(one), "\(page.name) no longer has: \(one)") }
        try await run(text, status)
        for one in all { #expect(said.contains(one), "\(command(text)): \(said)") }
    }

    /// From now on the reader types into another shell.
    func beginShell() { kept = [] }

    func serve(_ text: String) async throws {
        count += 1
        said = try await place.serve(command(text)).text
        all += said
    }

    /// The last thing in what was said that fits, or in `text`.
    func found(_ form: Regex<Substring>, in text: String? = nil) throws -> String {
        String(try #require((text ?? said).matches(of: form).last, "\(said)").0)
    }
}

extension GuideRehearsal.Step {
    typealias Rehearsal = GuideRehearsal

    /// A command that ends, with that status, and says those words.
    ///
    /// - Parameter input: a file that it reads from standard input.
    static func run(
        _ begins: String, status: Int32 = 0, says words: String..., input: String? = nil
    ) -> Self {
        Self(begins: begins) { rehearsal, item in
            try await rehearsal.run(try #require(item).text, status, input: input)
            for word in words {
                #expect(rehearsal.said.contains(word), "\(begins): \(rehearsal.said)")
            }
        }
    }

    /// A command after which the reader's shell is another: `cd`, `umask`.
    static func keeps(_ begins: String) -> Self {
        Self(begins: begins) { rehearsal, item in try await rehearsal.keep(try #require(item).text) }
    }

    /// A command that serves from then on.
    static func serves(_ begins: String, says words: String...) -> Self {
        Self(begins: begins) { rehearsal, item in
            try await rehearsal.serve(try #require(item).text)
            for word in words { #expect(rehearsal.said.contains(word), "\(rehearsal.said)") }
        }
    }

    /// A command of other software: whoever stands in for it was called so.
    static func told(_ begins: String) -> Self {
        Self(begins: begins) { rehearsal, item in
            try await rehearsal.run(try #require(item).text, 0)
            let call = try #require(try rehearsal.place.calls.last)
            #expect(rehearsal.command(begins).hasPrefix(call) || call.hasPrefix(rehearsal.command(begins)))
        }
    }

    /// `sealbell doctor`, from where there is no way to Apple and Google.
    ///
    /// - Parameters:
    ///   - peers: others that are out of reach here.
    ///   - isOwing: the store owes something, and its relay does not run.
    static func doctor(
        _ begins: String = "sealbell doctor", cannotReach peers: String..., isOwing: Bool = false
    ) -> Self {
        Self(begins: begins) { rehearsal, item in
            try await rehearsal.run(try #require(item).text, 69)
            let known = ["api.push.apple.com", "api.sandbox.push.apple.com", "fcm.googleapis.com"]
            let away = known + ["oauth2.googleapis.com"] + peers
            for line in rehearsal.said.split(separator: "\n") where line.hasPrefix("FAULT") {
                #expect(
                    line.contains(#/^FAULT +reach /#) && away.contains { line.contains(" \($0):") }, "\(line)"
                )
            }
            // Clock and open files are this machine's own.
            let warnings = rehearsal.said.split(separator: "\n").filter {
                $0.hasPrefix("warning") && !$0.contains(#/^warning +(clock|ports +limits\.connections)/#)
            }
            let owed = warnings.filter { $0.contains(#/^warning +store +outbox: /#) }
            #expect(warnings == owed && !owed.isEmpty == isOwing, "\(warnings)")
            #expect(rehearsal.said.contains("FAULT    reach"))
        }
    }

    /// A block, or lines, that the page has its reader put into a file.
    static func put(_ begins: String, at path: String) -> Self {
        Self(begins: begins) { rehearsal, item in
            switch try #require(item) {
            case .block(_, let text), .line(let text), .inline(let text):
                try rehearsal.place.put(text, at: path)
            }
        }
    }

    /// What the page shows, judged by `judge`.
    static func shown(
        _ begins: String, _ judge: @escaping (Rehearsal, String) async throws -> Void = { _, _ in }
    ) -> Self {
        Self(begins: begins) { rehearsal, item in try await judge(rehearsal, try #require(item).text) }
    }

    /// What the reader, or somebody else, does between two steps.
    static func hand(_ act: @escaping (Rehearsal) async throws -> Void) -> Self {
        Self(begins: nil) { rehearsal, _ in try await act(rehearsal) }
    }

    /// The relay serves, with the page's own configuration.
    static var relayServes: Self {
        .hand { try await $0.place.serve("exec sealbell serve --config /etc/sealbell/sealbell.yaml") }
    }

    /// The first steps of every page with apps: the folder, keys, and what Apple and Google gave.
    static func keys(_ new: String...) -> [Self] {
        [.run("install -d -m 0755 /etc/sealbell")] + new.map { .run("sealbell keys new " + $0) }
            + [.run("install -m 0600 AuthKey_F6G7H8I9J0.p8"), .run("install -m 0600 acme-firebase.json")]
    }
}
