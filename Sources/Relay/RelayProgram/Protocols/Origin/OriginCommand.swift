import AdminIngress
import ArgumentParser
import PushModel
import WireFormats

/// `sealbell origin`: a server half, and what its operator does at it.
struct OriginCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "origin",
        abstract: "Runs an origin: a server whose users' phones are notified through a relay.",
        discussion: """
            Without a further word it runs until it is told to stop. The other commands talk to the admin \
            listener of a running origin; name its state directory with --at.
            """,
        subcommands: [
            OriginRunCommand.self, OriginSignUpCommand.self, OriginRealmCommand.self, OriginUserCommand.self,
            OriginRegistrationsCommand.self, OriginNotifyCommand.self, OriginNotificationCommand.self,
            OriginWithdrawCommand.self, OriginTestCommand.self, OriginStaleCommand.self,
            OriginStatusCommand.self
        ], defaultSubcommand: OriginRunCommand.self)
}

/// `sealbell origin sign-up`.
struct OriginSignUpCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-up", abstract: "Signs the origin up at its relay, and tells it of the realms.",
        discussion: """
            Id and key stand in the credentials file before the relay is called, so that the command can be \
            given again whatever happened to the first.
            """)

    @Flag(help: "Exchange the key for a new one.")
    var rotateKey = false

    @Flag(
        help: """
            Take this host's name back when its id and key at the relay are lost. The relay asks this \
            server, by https at its public address, whether it agrees.
            """)
    var transfer = false

    @OptionGroup var adminListener: AdminListenerOptions

    func validate() throws {
        guard !(rotateKey && transfer) else {
            throw ValidationError("A transfer brings a new key by itself: leave --rotate-key out.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(OriginDesk.Path.signUp.rawValue, shell) { json in
            json.member("rotate", rotateKey)
            json.member("transfer", transfer)
        }
        adminListener.show(answer, shell) {
            ["\($0["host"]?.string ?? "") has signed up; realms: \($0["realms"]?.string ?? "")."]
        }
        return .done
    }
}

/// `sealbell origin realm`.
struct OriginRealmCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "realm", abstract: "Adds, lists, sets and removes realms: organizations of users.",
        subcommands: [
            OriginRealmAddCommand.self, OriginRealmListCommand.self, OriginRealmSetCommand.self,
            OriginRealmRemoveCommand.self
        ])
}

struct OriginRealmAddCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Adds a realm, and tells the relay of it.")

    @Argument(help: "The realm's name.")
    var name: String

    @Option(help: ArgumentHelp("Its address, if it has one of its own.", valueName: "url"))
    var url: String?

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(OriginDesk.Path.addRealm.rawValue, shell) { json in
            json.member("name", name)
            if let url {
                json.member("url", url)
            }
        }
        adminListener.show(answer, shell) {
            ["\(name)  \($0["uuid"]?.string ?? "")  relay: \($0["relay"]?.string ?? "")"]
        }
        return .done
    }
}

struct OriginRealmListCommand: SealbellCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "Lists the realms.")

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(OriginDesk.Path.realms.rawValue, shell)
        adminListener.show(answer, shell) { answer in
            (answer["realms"]?.array ?? []).map { realm in
                ["name", "uuid", "url"].map { realm[$0]?.string ?? "" }.joined(separator: "  ")
                    + (realm["require_e2ee"]?.bool == true ? "  encryption required" : "")
            }
        }
        return .done
    }
}

struct OriginRealmSetCommand: SealbellCommand {
    enum Switch: String, ExpressibleByArgument { case on, off }

    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Sets what a realm requires.")

    @Argument(help: "The realm's name.")
    var name: String

    @Option(
        name: .customLong("require-e2ee"),
        help: ArgumentHelp("Whether its notifications must be encrypted.", valueName: "on|off"))
    var requires: Switch

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(OriginDesk.Path.setRealm.rawValue, shell) { json in
            json.member("name", name)
            json.member("require_e2ee", requires == .on)
        }
        adminListener.show(answer, shell) { _ in ["\(name): encryption required \(requires.rawValue)"] }
        return .done
    }
}

struct OriginRealmRemoveCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Removes a realm that has no users, and tells the relay.")

    @Argument(help: "The realm's name.")
    var name: String

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(.removeRealm, ["name": name], shell)
        adminListener.show(answer, shell) { ["\(name) is removed.  relay: \($0["relay"]?.string ?? "")"] }
        return .done
    }
}

/// `sealbell origin user`.
struct OriginUserCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "user", abstract: "Adds, lists and removes users, and gives them keys.",
        subcommands: [
            OriginUserAddCommand.self, OriginUserListCommand.self, OriginUserKeyCommand.self,
            OriginUserRemoveCommand.self
        ])
}

struct OriginUserAddCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Adds a user, and prints their API key once.")

    @Argument(help: "The user's name, as their clients log in with it.")
    var name: String

    @Option(help: ArgumentHelp("The realm; the first one if none is named.", valueName: "name"))
    var realm: String?

    @Flag(help: "Print an app password for a Nextcloud client as well, on a line of its own.")
    var nextcloud = false

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(OriginDesk.Path.addUser.rawValue, shell) { json in
            json.member("name", name)
            json.member("app_password", nextcloud)
            if let realm {
                json.member("realm", realm)
            }
        }
        adminListener.show(answer, shell) { answer in
            ["key", "app_password"].compactMap { answer[$0]?.string }
        }
        return .done
    }
}

struct OriginUserListCommand: SealbellCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "Lists the users.")

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        var after = "0"
        // Ends: the numbers rise, and the records are finite.
        while true {
            let page = try await adminListener.ask(
                "\(OriginDesk.Path.users.rawValue)?after=\(after)", shell)
            if adminListener.json {
                adminListener.show(page, shell) { _ in [] }
            } else {
                for user in page["users"]?.array ?? [] {
                    shell.out("\(user["name"]?.string ?? "")  \(user["realm"]?.string ?? "")")
                }
            }
            guard let next = page["next"]?.string, next != after else { break }
            after = next
        }
        return .done
    }
}

struct OriginUserKeyCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "key", abstract: "Gives a user a new API key, and prints it once; the old one is over.",
        discussion: "Phones that registered with the old key are removed; their apps have to log in anew.")

    @Argument(help: "The user's name.")
    var name: String

    @Flag(help: "One more app password for a Nextcloud client instead.")
    var nextcloud = false

    @Flag(help: "Leave the phones registered.")
    var keepPhones = false

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(OriginDesk.Path.renewKey.rawValue, shell) { json in
            json.member("name", name)
            json.member("app_password", nextcloud)
            json.member("keep_phones", keepPhones)
        }
        adminListener.show(answer, shell) { [$0["key"]?.string ?? ""] }
        return .done
    }
}

struct OriginUserRemoveCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Removes a user with all their devices.")

    @Argument(help: "The user's name.")
    var name: String

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(.removeUser, ["name": name], shell)
        adminListener.show(answer, shell) { _ in ["\(name) is removed."] }
        return .done
    }
}

/// `sealbell origin notify USER TEXT`.
struct OriginNotifyCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "notify", abstract: "Notifies all devices of a user.")

    @Argument(help: "The user's name.")
    var user: String

    @Argument(help: "What the notification says.")
    var text: String

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(.notify, ["user": user, "text": text], shell)
        adminListener.show(answer, shell) {
            [
                "\($0["id"]?.string ?? "")  owed to \(counted($0["devices"]?.int64 ?? 0, "device"))",
                "What becomes of it: sealbell origin notification \($0["id"]?.string ?? "")"
            ]
        }
        return .done
    }
}

/// `sealbell origin notification ID`.
struct OriginNotificationCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "notification", abstract: "Says what became of a notification at each device.")

    @Argument(help: "The id that notify printed; known for a day.")
    var id: String

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(
            OriginDesk.Path.notification.rawValue, query: [("id", id.filter(\.isHexDigit))], shell)
        adminListener.show(answer, shell) { answer in
            (answer["devices"]?.array ?? []).map { device in
                let at = device["at"]?.int64.map { timestamp(UnixTime(milliseconds: $0)) } ?? ""
                let words = ["device", "state", "reason"].compactMap { device[$0]?.string }
                return (words + [at]).joined(separator: "  ")
            }
        }
        return .done
    }
}

extension AdminListenerOptions {
    /// Asks the running origin for something, with these members.
    func ask(
        _ path: OriginDesk.Path, _ members: KeyValuePairs<String, String>, _ shell: Shell
    ) async throws(CommandFailure) -> JSONValue {
        try await ask(path.rawValue, shell) { json in
            for (name, value) in members {
                json.key(name)
                json.string(value)
            }
        }
    }
}
