import AdminIngress
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
            for line in try await talk.hear(index, answers: false) { shell.out(line) }
            let group = talk.phone.groups[index]
            let own = talk.phone.pair.publicKey
            shell.out("group \(group.name): \(counted(group.members.count, "member"))")
            let tokens = try talk.tokens(index)
            for member in group.members {
                let leaf = group.leaf(of: member)
                let count = tokens[leaf] ?? 0
                let words = count == 0 ? "no token" : counted(count, "token")
                shell.out("  leaf \(leaf): \(words)\(member == own ? ", this phone" : "")")
            }
        }
        try talk.phone.write()
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
        for line in try await talk.hear(index, answers: false) { shell.out(line) }
        let said = try await talk.work(index, keeps: false) { $0.askAgain() }
        guard said.told > 0 else {
            throw CommandFailure(.failed, "The format \(talk.phone.format.rawValue) has no such request.")
        }
        try talk.phone.write()
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
        let said = try await place.settle(&talk, index, shell)
        try talk.phone.write()
        shell.out(said.told == 0 ? "told nothing new" : "told its token")
        shell.out(said.answers == 0 ? "nobody waits for an answer" : "answered")
        return .done
    }
}
