import AdminIngress
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
            OriginsListCommand.self, OriginsInvitationsCommand.self, OriginsInviteCommand.self,
            OriginsUninviteCommand.self, OriginsSuspendCommand.self, OriginsResumeCommand.self,
            OriginsQuotaCommand.self
        ])
}

/// `sealbell origins list`.
struct OriginsListCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the origins that have signed up.",
        discussion: """
            Realms that an origin reports no longer follow a plus; devices include registrations that have \
            ended and are not removed yet. An origin was last seen when it signed up, changed its form or \
            reported its realms, which servers do hourly.
            """)

    @OptionGroup var place: InstanceOption
    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let listed = try await place.all("origins", OriginsDesk.listPath, by: "id", adminListener, shell)
        let header = ["HOST", "STANDING", "QUOTA", "REALMS", "DEVICES", "LAST SEEN", "CONTACT", "ID"]
        adminListener.show(listed, header, none: "No origin has signed up.", shell) { origin in
            [
                origin["host"]?.string ?? "", origin["standing"]?.string ?? "",
                Self.quota(origin["pushes_per_minute"]?.int64), Self.realms(origin),
                String(origin["devices"]?.int64 ?? 0), moment(origin["seen_at"]),
                origin["contact"]?.string ?? "", origin["id"]?.string ?? ""
            ]
        }
        return .done
    }

    /// Realms that it reports, and those that it does no longer.
    private static func realms(_ origin: JSONValue) -> String {
        let (live, dead) = (origin["realms"]?.int64 ?? 0, origin["realms_deleted"]?.int64 ?? 0)
        return dead == 0 ? "\(live)" : "\(live)+\(dead)"
    }

    private static func quota(_ number: Int64?) -> String {
        guard let number else { return "default" }
        return number == 0 ? "unlimited" : "\(number)/min"
    }
}

/// A time that the relay gave in seconds; nothing for none.
private func moment(_ seconds: JSONValue?) -> String {
    seconds?.int64.map { timestamp(UnixTime(seconds: $0)) } ?? ""
}

extension InstanceOption {
    /// Every row of a list that the relay gives in pages, each once.
    ///
    /// - Parameter id: the member that tells rows apart.
    fileprivate func all(
        _ member: String, _ path: String, by id: String, _ adminListener: AdminListenerOptions, _ shell: Shell
    ) async throws -> [JSONValue] {
        var rows: [String: JSONValue] = [:]
        var order: [String] = []
        var after = "0"
        // Ends: the numbers rise, and the relay's records are finite.
        while true {
            let page = try await adminListener.ask(
                path, query: [("after", after), ("instance", instance)], shell)
            for row in page[member]?.array ?? [] {
                guard let name = row[id]?.string else { continue }
                // One that was written while we paged comes again, and newer.
                if rows.updateValue(row, forKey: name) == nil { order.append(name) }
            }
            guard let next = page["next"]?.string, next != after else { break }
            after = next
        }
        return order.compactMap { rows[$0] }
    }
}

extension AdminListenerOptions {
    /// The rows as they came with `--json`, else a table of them; a sentence where there is none.
    fileprivate func show(
        _ rows: [JSONValue], _ header: [String], none: String, _ shell: Shell,
        _ cells: (JSONValue) -> [String]
    ) {
        show(.array(rows), shell) { _ in
            TextTable.lines(header, rows.map(cells), isStyled: shell.isStyled)
        }
        if rows.isEmpty, !json { shell.err(none) }
    }
}

/// `sealbell origins invitations`.
struct OriginsInvitationsCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "invitations", abstract: "Lists the host names that were invited and may still sign up.")

    @OptionGroup var place: InstanceOption
    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let listed = try await place.all(
            "invitations", OriginsDesk.invitationsPath, by: "host", adminListener, shell)
        adminListener.show(listed, ["HOST", "UNTIL"], none: "Nobody is invited.", shell) {
            [$0["host"]?.string ?? "", moment($0["expires_at"])]
        }
        return .done
    }
}

/// `sealbell origins uninvite HOST`.
struct OriginsUninviteCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "uninvite", abstract: "Takes an invitation back that nobody has used.",
        discussion: "An origin that has signed up keeps its place: suspend it instead.")

    @Argument(help: ArgumentHelp("The host name, as origins invitations shows it.", valueName: "host"))
    var host: String

    @OptionGroup var place: InstanceOption
    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(OriginsDesk.uninvitePath, shell) { json in
            place.write(&json)
            json.member("host", host)
        }
        let name = answer["host"]?.string ?? host
        shell.out(adminListener.json ? try jsonText(["host": name]) : "\(name) may no longer sign up.")
        return .done
    }
}

/// `sealbell origins invite HOST`.
struct OriginsInviteCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "invite", abstract: "Admits one sign-up of a host name within 7 days.",
        discussion: """
            An invitation is for the name, at whatever port: a server that names itself with a port \
            signs up with it, and uses the invitation of its name.
            """)

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
        let name = answer["host"]?.string ?? host
        let ports = host.contains(":") ? " The invitation is for the name, at whatever port." : ""
        shell.out(
            adminListener.json
                ? try jsonText(["host": name, "expires_at": end])
                : "\(name) may sign up until \(end).\(ports)")
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
        if adminListener.json {
            let ids = answer["ids"]?.array?.compactMap(\.string) ?? []
            shell.out(
                try jsonText(StandingAnswer(id: answer["id"]?.string ?? "", ids: ids, standing: standing)))
        } else {
            for name in OriginAnswer.names(answer) { shell.out("\(name) is \(standing).") }
        }
    }
}

/// What a change of origins has answered.
private enum OriginAnswer {
    /// The origins as a person knows them: `chat.acme.example (0ec3eedd-…)`.
    static func names(_ answer: JSONValue) -> [String] {
        let ids = answer["ids"]?.array?.compactMap(\.string) ?? []
        let hosts = answer["hosts"]?.array?.map { $0.string ?? "" } ?? []
        return ids.enumerated().map { index, id in
            // A relay of an earlier version names no host.
            index < hosts.count && !hosts[index].isEmpty ? "\(hosts[index]) (\(id))" : id
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
            let name = OriginAnswer.names(answer).first ?? id
            switch number {
            case nil: shell.out("\(name) has the configuration's quota.")
            case 0?: shell.out("\(name) may send without limit.")
            case let number?: shell.out("\(name) may send \(counted(number, "push", "pushes")) a minute.")
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
