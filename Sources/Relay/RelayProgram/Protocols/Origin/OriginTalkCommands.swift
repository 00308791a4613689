import AdminIngress
import ArgumentParser
import PushModel
import WireFormats

/// `sealbell origin withdraw USER ID…`.
struct OriginWithdrawCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "withdraw", abstract: "Takes notifications off the screens of a user's devices.")

    @Argument(help: "The user's name.")
    var user: String

    @Argument(help: "Ids that notify printed, 1 to 200.")
    var ids: [String]

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(OriginDesk.Path.withdraw.rawValue, shell) { json in
            json.member("user", user)
            json.beginArray("ids")
            for id in ids { json.string(id) }
            json.endArray()
        }
        adminListener.show(answer, shell) {
            ["\($0["id"]?.string ?? "")  owed to \(counted($0["devices"]?.int64 ?? 0, "device"))"]
        }
        return .done
    }
}

/// `sealbell origin test USER`.
struct OriginTestCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "test", abstract: "Sends a test notification to all devices of a user.")

    @Argument(help: "The user's name.")
    var user: String

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(.test, ["user": user], shell)
        adminListener.show(answer, shell) {
            ["\($0["id"]?.string ?? "")  owed to \(counted($0["devices"]?.int64 ?? 0, "device"))"]
        }
        return .done
    }
}

/// `sealbell origin stale`.
struct OriginStaleCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "stale", abstract: "Asks the relay now which phones are dead, and not at its daily time."
    )

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(.stale, [:], shell)
        adminListener.show(answer, shell) { ["asked for \(counted($0["realms"]?.int64 ?? 0, "realm"))"] }
        return .done
    }
}

/// `sealbell origin registrations`.
struct OriginRegistrationsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "registrations", abstract: "Lists, drops and retries registrations of devices.",
        subcommands: [
            OriginRegistrationsListCommand.self, OriginRegistrationsRetryCommand.self,
            OriginRegistrationsDropCommand.self
        ])
}

struct OriginRegistrationsListCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists a user's devices: kind, state, and since when one waits.")

    @Argument(help: "The user's name.")
    var user: String

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(.registrations, ["user": user], shell)
        adminListener.show(answer, shell) { answer in
            (answer["registrations"]?.array ?? []).map { one in
                let since = one["waiting_since"]?.int64.map {
                    "since \(timestamp(UnixTime(milliseconds: $0))), tried "
                        + counted(one["tries"]?.int64 ?? 0, "time")
                }
                let words = ["device", "profile", "state", "code", "group", "proxy"]
                    .compactMap { one[$0]?.string }
                return (words + [since].compactMap(\.self)).joined(separator: "  ")
            }
        }
        return .done
    }
}

struct OriginRegistrationsRetryCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Tries all registrations that wait for the relay now.",
        discussion: """
            They are tried by themselves within the hour (origin.queue.longest_retry); this is for whoever \
            has just mended what kept them.
            """)

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(.retry, [:], shell)
        adminListener.show(answer, shell) {
            [counted($0["owed"]?.int64 ?? 0, "registration is", "registrations are") + " tried now."]
        }
        return .done
    }
}

struct OriginRegistrationsDropCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "drop", abstract: "Removes a device; its app registers again when it starts.")

    @Argument(help: "The user's name.")
    var user: String

    @Argument(help: "The device, as the list names it: account 7, device 12, cloud 31.")
    var device: [String]

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(
            .drop, ["user": user, "device": device.joined(separator: " ")], shell)
        adminListener.show(answer, shell) { _ in ["\(device.joined(separator: " ")) is dropped."] }
        return .done
    }
}

/// `sealbell origin status`.
struct OriginStatusCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Says how the origin stands: realms, users, devices, and the relay.")

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(OriginDesk.Path.status.rawValue, shell)
        adminListener.show(answer, shell, Self.lines)
        return .done
    }

    private static func lines(_ answer: JSONValue) -> [String] {
        func number(_ name: String) -> Int64 { answer[name]?.int64 ?? 0 }
        var lines = [
            "relay          \(answer["relay"]?.string ?? "")",
            "realms         \(number("realms")), \(number("realms_requiring")) require encryption"
                + (answer["server_requires"]?.bool == true ? ", and this server of all" : ""),
            "users          \(number("users"))",
            "waiting polls  \(number("waiting_polls"))"
        ]
        for one in answer["devices"]?.array ?? [] {
            lines.append(
                "devices        \(one["count"]?.int64 ?? 0) \(one["profile"]?.string ?? "") "
                    + (one["state"]?.string ?? ""))
        }
        if let oldest = answer["oldest_waiting"]?.int64 {
            lines.append("oldest waiting since \(timestamp(UnixTime(milliseconds: oldest)))")
        }
        for one in answer["calls"]?.array ?? [] {
            let owed = one["owed"]?.int64 ?? 0
            guard owed > 0 || one["reason"]?.string != nil else { continue }
            let heard = one["reason"]?.string.map { ", last heard \($0)" } ?? ""
            lines.append("calls          \(owed) owed by \(one["lane"]?.string ?? "")\(heard)")
        }
        for one in answer["waiting_keys"]?.array ?? [] {
            lines.append(
                "relay key      \(one["count"]?.int64 ?? 0) wait for \(one["key"]?.string ?? "")")
        }
        lines.append("legacy apps    \(counted(number("legacy_refused"), "call")) refused since the start")
        return lines
    }
}
