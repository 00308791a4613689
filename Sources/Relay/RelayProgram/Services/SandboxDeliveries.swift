import AdminIngress
import PushModel
import WebClient
import WireFormats

/// What the simulated push services of a running sandbox accepted for one phone.
struct SandboxDeliveries: Sendable {
    private let name: String
    private let control: LocalCall
    private let directory: String
    private let shell: Shell

    /// Of one page: each delivery has a body of 4 KiB.
    private static let page = 200
    /// Between two looks at what was delivered.
    private static let pause = Duration.milliseconds(100)

    /// - Parameter directory: the sandbox's state directory.
    /// - Throws: `CommandFailure` where no sandbox serves from there.
    init(_ directory: String, _ shell: Shell) throws(CommandFailure) {
        let file = try SandboxFacts.find(directory)
        control = try SandboxFacts.control(file, directory, shell)
        self.directory = directory
        self.shell = shell
        name = "\(file.pid).\(file.pidStart)"
    }

    /// The last one for a phone; waited for, for as long as the shell is patient, where there is none yet.
    ///
    /// - Parameters: as of ``read(for:isApple:_:)``.
    /// - Throws: `CommandFailure` when there was none, or the sandbox does not answer.
    func last(for token: Secret, isApple: Bool) async throws(CommandFailure) -> Secret {
        let end = shell.world.instant() + shell.wait
        var seen = SeenDeliveries()
        while true {
            if let last = try await read(for: token, isApple: isApple, &seen).last { return last }
            guard shell.world.instant() < end else { break }
            // Ends early only when cancelled.
            try? await shell.world.sleep(shell.world.instant() + Self.pause)
        }
        throw CommandFailure(.unavailable, "The sandbox of \(directory) has delivered nothing to this phone.")
    }

    /// What is new for a phone, the oldest first, as its push service has it.
    ///
    /// - Parameters:
    ///   - token: the phone's, as its push service spells it; of one that has several, blanks between.
    ///   - isApple: whether that service is Apple's.
    ///   - seen: what was read before; what is read now is added.
    /// - Throws: `CommandFailure` when the sandbox does not answer.
    func read(
        for token: Secret, isApple: Bool, _ seen: inout SeenDeliveries
    ) async throws(CommandFailure) -> [Secret] {
        let own = Self.spelt(token.word, isApple).split(separator: " ")
        seen.begin(name)
        var found: [Secret] = []
        for simulator in isApple ? ["production", "sandbox"] : ["fcm"] {
            // Ends: the simulator keeps a bounded number of deliveries, and numbers rise.
            while true {
                let list = try await page(simulator, after: seen.number(simulator))
                for delivery in list {
                    guard let number = delivery["number"]?.int64,
                        number > Int64(seen.number(simulator))
                    else { throw unanswered }
                    seen.see(simulator, Int(number))
                    guard let token = delivery["token"]?.string,
                        own.contains(where: { $0 == Self.spelt(token, isApple) }),
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
    private static func spelt(_ token: String, _ isApple: Bool) -> String {
        isApple ? token.lowercased() : token
    }
}

/// What a phone, or whoever writes to one, takes from the run file of a sandbox.
enum SandboxFacts {
    /// The file of the authority of a sandbox with this state directory.
    static func authority(of directory: String) -> String { joinPath(directory, "sandbox/ca.pem") }

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

    /// The run file of the sandbox that an option names; `nil` where it was not given.
    ///
    /// - Throws: `CommandFailure` where none serves from there.
    static func find(option name: String?, _ shell: Shell) throws(CommandFailure) -> RunFile? {
        guard let name else { return nil }
        return try find(joinPath(shell.facts.workingDirectory, name))
    }

    /// The newest public key of its only instance of a protocol.
    ///
    /// - Parameters:
    ///   - word: the protocol's.
    ///   - option: by which the key is given where there is no such instance, or several.
    static func key(of word: String, _ file: RunFile, option: String) throws(CommandFailure) -> String {
        let names = (file.protocols ?? [:]).filter { $0.value == word }.keys
        guard names.count == 1, let key = names.first.flatMap({ file.publicKeys[$0]?.first }) else {
            let found = counted(names.count, "instance")
            throw CommandFailure(.usage, "The sandbox has \(found) of \(word): give \(option).")
        }
        return key
    }

    /// - Parameter option: by which the URL is given where the sandbox has no such listener.
    static func url(_ listener: String, _ file: RunFile, option: String) throws(CommandFailure) -> String {
        guard let url = file.urls[listener] else {
            throw CommandFailure(.usage, "The sandbox has no \(listener): give \(option).")
        }
        return url
    }

    /// The bundle id of its only app that has one.
    static func bundle(_ file: RunFile, option: String) throws(CommandFailure) -> String {
        let bundles = Set(file.apps.values.flatMap(\.self))
        guard bundles.count == 1, let bundle = bundles.first else {
            let found = counted(bundles.count, "app id")
            let choice = bundles.isEmpty ? "" : " with one of " + bundles.sorted().listed("or")
            throw CommandFailure(.usage, "The sandbox has \(found): give \(option)\(choice).")
        }
        return bundle
    }

    /// Where the sandbox is read and steered.
    ///
    /// - Throws: `CommandFailure` where the relay is no sandbox.
    static func control(
        _ file: RunFile, _ directory: String, _ shell: Shell
    ) throws(CommandFailure) -> LocalCall {
        guard let url = file.urls["sandbox-control"],
            let control = LocalCall(url: url, deadline: shell.patience)
        else {
            throw CommandFailure(.failed, "The relay that serves from \(directory) is no sandbox.")
        }
        return control
    }
}
