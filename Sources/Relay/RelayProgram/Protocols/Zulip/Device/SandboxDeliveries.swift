import PushModel
import WebClient
import WireFormats
import ZulipPush

/// What the simulated push services of a running sandbox accepted for one phone.
struct SandboxDeliveries: Sendable {
    private let name: String
    private let control: LocalCall
    private let directory: String

    /// Of one page: each delivery has a body of 4 KiB.
    private static let page = 200

    /// - Parameter directory: the sandbox's state directory.
    /// - Throws: `CommandFailure` where no sandbox serves from there.
    init(_ directory: String, _ shell: Shell) throws(CommandFailure) {
        let file = try SandboxFacts.find(directory)
        guard let url = file.urls["sandbox-control"],
            let control = LocalCall(url: url, deadline: shell.patience)
        else {
            throw CommandFailure(.failed, "The relay that serves from \(directory) is no sandbox.")
        }
        self.directory = directory
        self.control = control
        name = "\(file.pid).\(file.pidStart)"
    }

    /// What is new for a phone, the oldest first, as its push service has it.
    ///
    /// - Parameter seen: what was read before; what is read now is added.
    /// - Throws: `CommandFailure` when the sandbox does not answer.
    func read(
        for phone: PlayedZulip, _ seen: inout SeenDeliveries
    ) async throws(CommandFailure) -> [Secret] {
        seen.begin(name)
        var found: [Secret] = []
        for simulator in phone.service == .apns ? ["production", "sandbox"] : ["fcm"] {
            // Ends: the simulator keeps a bounded number of deliveries, and numbers rise.
            while true {
                let list = try await page(simulator, after: seen.number(simulator))
                for delivery in list {
                    guard let number = delivery["number"]?.int64,
                        number > Int64(seen.number(simulator))
                    else { throw unanswered }
                    seen.see(simulator, Int(number))
                    guard let token = delivery["token"]?.string, Self.isSame(token, phone),
                        let body = delivery["body"]?.string
                    else { continue }
                    do throws(FormatError) { found.append(Secret(try Base64.decode(body))) } catch {
                        throw unanswered
                    }
                }
                guard list.count == Self.page else { break }
            }
        }
        return found
    }

    private var unanswered: CommandFailure {
        CommandFailure(.unavailable, "The sandbox of \(directory) does not say what was delivered.")
    }

    private func page(_ simulator: String, after number: Int) async throws(CommandFailure) -> [JSONValue] {
        let answer: LocalCall.Answer
        do throws(LocalCall.Fault) {
            answer = try await control.ask(
                "GET", "/\(simulator)/deliveries?after=\(number)&limit=\(Self.page)")
        } catch { throw unanswered }
        guard answer.status == 200,
            // Then another program listens there.
            let json = try? JSONValue.parse(answer.body, limitBytes: LocalCall.answerLimitBytes),
            let list = json.array
        else { throw unanswered }
        return list
    }

    /// Apple's tokens are hex digits in either case.
    private static func isSame(_ token: String, _ phone: PlayedZulip) -> Bool {
        let own = phone.token.reveal { String(decoding: $0, as: UTF8.self) }
        return phone.service == .apns ? token.lowercased() == own.lowercased() : token == own
    }
}

/// What a phone takes from the run file of a sandbox.
enum SandboxFacts {
    /// - Throws: `CommandFailure` where none serves from the directory.
    static func find(_ directory: String) throws(CommandFailure) -> RunFile {
        let found: RunFile.Found
        do throws(FileFault) { found = try RunFile.find(state: directory) } catch {
            throw CommandFailure(.failed, "\(joinPath(directory, RunFile.name)): \(error.sentence)")
        }
        guard case .running(let file) = found else {
            throw CommandFailure(
                .unavailable,
                "No sandbox serves from \(directory). Start one there: sealbell serve --sandbox --state "
                    + directory)
        }
        return file
    }

    /// The key that apps of its Zulip instance are built with: the only one of that form.
    static func bouncerKey(_ file: RunFile) throws(CommandFailure) -> String {
        // Other protocols have keys of other forms, in which no registration can be sealed.
        let keys = file.publicKeys.values.compactMap { keys in
            keys.first { (try? ZulipAppBuild(bouncerKey: $0)) != nil }
        }
        guard keys.count == 1, let key = keys.first else {
            throw CommandFailure(
                .usage, "The sandbox has \(keys.count) Zulip instances: give --bouncer-key.")
        }
        return key
    }

    /// The bundle id of its only app that has one.
    static func bundle(_ file: RunFile) throws(CommandFailure) -> String {
        let bundles = Set(file.apps.values.flatMap(\.self))
        guard bundles.count == 1, let bundle = bundles.first else {
            throw CommandFailure(
                .usage,
                "The sandbox has \(bundles.count) app ids: give --app-id with one of "
                    + bundles.sorted().listed("or") + ".")
        }
        return bundle
    }
}
