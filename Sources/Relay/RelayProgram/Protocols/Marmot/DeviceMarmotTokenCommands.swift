import ArgumentParser
import MarmotPush
import PushModel
import Secp256k1Keys

/// `sealbell device marmot groups`.
struct DeviceGroupsMarmotCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "groups", abstract: "Lists groups, their members, and whose phones can be woken.",
        discussion: "Reads what is new first. It takes no code out of the state file.")

    @OptionGroup var place: PlayedMarmotOptions

    func run(_ shell: Shell) async throws -> Ending {
        var talk = try place.talk(shell)
        let meant = place.group == nil ? Array(talk.phone.groups.indices) : [try place.index(talk.phone)]
        guard !meant.isEmpty else {
            shell.out("in no group")
            return .done
        }
        for index in meant {
            for line in try await talk.hear(index, answers: false).lines { shell.out(line) }
            let group = talk.phone.groups[index]
            let own = talk.phone.pair.publicKey
            shell.out("group \(group.name): \(group.members.count) members")
            let tokens = try talk.tokens(index)
            for member in group.members {
                let leaf = group.leaf(of: member)
                let count = tokens[leaf] ?? 0
                let words = count == 0 ? "no token" : count == 1 ? "1 token" : "\(count) tokens"
                shell.out("  leaf \(leaf): \(words)\(member == own ? ", this phone" : "")")
            }
        }
        try talk.phone.write(place.path(shell))
        return .done
    }
}

/// `sealbell device marmot ask`.
struct DeviceAskMarmotCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "ask", abstract: "Asks a group for everybody's tokens.",
        discussion: """
            Others answer with share, or while they listen. The mip05 formats have no such request without \
            a token.
            """)

    @OptionGroup var place: PlayedMarmotOptions

    func run(_ shell: Shell) async throws -> Ending {
        var talk = try place.talk(shell)
        let index = try place.index(talk.phone)
        for line in try await talk.hear(index, answers: false).lines { shell.out(line) }
        let due = try talk.request(index)
        guard due.told > 0 else {
            throw CommandFailure(.failed, "The format \(talk.phone.format.rawValue) has no such request.")
        }
        try await talk.say(due, index)
        try talk.phone.write(place.path(shell))
        shell.out("asked")
        return .done
    }
}

/// `sealbell device marmot share`.
struct DeviceShareMarmotCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "share", abstract: "Tells a group this phone's token, and all it knows to who asked.",
        discussion: "Nothing is said that the group knows, and an answer only where nobody has given one.")

    @OptionGroup var place: PlayedMarmotOptions

    func run(_ shell: Shell) async throws -> Ending {
        var talk = try place.talk(shell)
        let index = try place.index(talk.phone)
        let due = try await place.settle(&talk, index, shell)
        try talk.phone.write(place.path(shell))
        shell.out(due?.told ?? 0 == 0 ? "told nothing new" : "told its token")
        shell.out(due?.answers ?? 0 == 0 ? "nobody waits for an answer" : "answered")
        return .done
    }
}
