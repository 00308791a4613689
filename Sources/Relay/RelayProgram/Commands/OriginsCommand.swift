import ArgumentParser
import PushModel
import WireFormats

/// `sealbell origins`: who has signed up at a running relay, and who may.
struct OriginsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "origins",
        abstract: "Lists, invites, suspends, resumes and limits origins of a running relay.",
        discussion: "These commands talk to the relay's admin listener; name its state directory with --at.",
        subcommands: [
            OriginsListCommand.self, OriginsInviteCommand.self, OriginsSuspendCommand.self,
            OriginsResumeCommand.self, OriginsQuotaCommand.self
        ])
}

/// `sealbell origins list`.
struct OriginsListCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the origins that have signed up.")

    @OptionGroup var place: InstanceOption
    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        var origins: [String: JSONValue] = [:]
        var order: [String] = []
        var after = "0"
        // Ends: the numbers rise, and the relay's records are finite.
        while true {
            let page = try await adminListener.ask(
                OriginsDesk.listPath, query: [("after", after), ("instance", place.instance)], shell)
            for origin in page["origins"]?.array ?? [] {
                guard let id = origin["id"]?.string else { continue }
                // One that was written while we paged comes again, and newer.
                if origins.updateValue(origin, forKey: id) == nil { order.append(id) }
            }
            guard let next = page["next"]?.string, next != after else { break }
            after = next
        }
        let listed = order.compactMap { origins[$0] }
        adminListener.show(.array(listed), shell) { _ in
            listed.map { origin in
                var words = ["id", "standing", "host", "contact"].map { origin[$0]?.string ?? "" }
                words.insert(Self.quota(origin["pushes_per_minute"]?.int64), at: 2)
                words.insert(Self.realms(origin), at: 3)
                return words.joined(separator: "  ")
            }
        }
        return .done
    }

    /// Realms that it reports, and those that it does no longer.
    private static func realms(_ origin: JSONValue) -> String {
        let (live, dead) = (origin["realms"]?.int64 ?? 0, origin["realms_deleted"]?.int64 ?? 0)
        return dead == 0 ? "\(live) realms" : "\(live)+\(dead) realms"
    }

    private static func quota(_ number: Int64?) -> String {
        guard let number else { return "default" }
        return number == 0 ? "unlimited" : "\(number)/min"
    }
}

/// `sealbell origins invite HOST`.
struct OriginsInviteCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "invite", abstract: "Admits one sign-up of a host name within 7 days.")

    @Argument(help: ArgumentHelp("The host name of the server, without https://.", valueName: "host"))
    var host: String

    @OptionGroup var place: InstanceOption
    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(OriginsDesk.invitePath, shell) { json in
            place.write(&json)
            json.member("host", host)
        }
        let end = answer["expires_at"]?.int64.map { timestamp(UnixTime(seconds: $0)) } ?? ""
        shell.out(
            adminListener.json
                ? try jsonText(["host": host, "expires_at": end]) : "\(host) may sign up until \(end).")
        return .done
    }
}

/// `sealbell origins suspend HOST|UUID`.
struct OriginsSuspendCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspend",
        abstract: "Refuses an origin from now on; it keeps its name and devices.",
        discussion: """
            The origin gets the answers of a deactivated registration. A host name without a port means \
            every origin of that name, and nobody can sign up under it until they are resumed.
            """)

    @OptionGroup var origin: OriginArgument
    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        try await origin.set("suspended", OriginsDesk.suspendPath, adminListener, shell)
        return .done
    }
}

extension OriginArgument {
    /// Asks for a standing, and says whose it is now.
    fileprivate func set(
        _ standing: String, _ path: String, _ adminListener: AdminListenerOptions, _ shell: Shell
    ) async throws {
        let answer = try await adminListener.ask(path, shell, write)
        let ids = answer["ids"]?.array?.compactMap(\.string) ?? []
        if adminListener.json {
            shell.out(
                try jsonText(StandingAnswer(id: answer["id"]?.string ?? "", ids: ids, standing: standing)))
        } else {
            for id in ids { shell.out("\(id) is \(standing).") }
        }
    }
}

private struct StandingAnswer: Encodable {
    /// The first, where a name means several.
    var id: String
    var ids: [String]
    var standing: String
}

/// `sealbell origins resume HOST|UUID`.
struct OriginsResumeCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Lifts a suspension.")

    @OptionGroup var origin: OriginArgument
    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        try await origin.set("active", OriginsDesk.resumePath, adminListener, shell)
        return .done
    }
}

/// `sealbell origins quota HOST|UUID N`.
struct OriginsQuotaCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "quota",
        abstract: "Limits one origin's pushes a minute, from its next call on.",
        discussion: """
            The quota is a pace: pushes above it are accepted and sent later, in order, urgent ones first. \
            Only an origin that is ten minutes ahead of it gets 429 with Retry-After; if a call has pushes \
            of several origins, only this origin's are left out. An origin without a quota has the \
            configuration's limits.pushes_per_minute. The quota holds from the origin's next call on, in \
            every relay on the store, and survives restarts and reloads.
            """)

    @OptionGroup var origin: OriginArgument

    @Argument(
        help: ArgumentHelp(
            "Pushes a minute; 0 for no limit, default for the configuration's.", valueName: "pushes"))
    var quota: String

    @OptionGroup var adminListener: AdminListenerOptions

    private var number: Int64? { Int64(quota).flatMap { OriginsDesk.quotas.contains($0) ? $0 : nil } }

    func validate() throws {
        if quota != "default", number == nil {
            throw ValidationError("A quota is 0 to 100000000 pushes a minute, or default.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(OriginsDesk.quotaPath, shell) { json in
            origin.write(&json)
            json.optional("pushes_per_minute", number)
        }
        let id = answer["id"]?.string ?? ""
        if adminListener.json {
            shell.out(try jsonText(QuotaAnswer(id: id, pushesPerMinute: number)))
        } else {
            switch number {
            case nil: shell.out("\(id) has the configuration's quota.")
            case 0?: shell.out("\(id) may send without limit.")
            case let number?: shell.out("\(id) may send \(number) pushes a minute.")
            }
        }
        return .done
    }

    private struct QuotaAnswer: Encodable {
        var id: String
        /// `nil`, hence absent: the configuration's.
        var pushesPerMinute: Int64?

        enum CodingKeys: String, CodingKey {
            case id
            case pushesPerMinute = "pushes_per_minute"
        }
    }
}
