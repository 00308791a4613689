import ArgumentParser

/// The commands that each belong to one protocol.
enum StandardCommands {
    static let all: [any ParsableCommand.Type] = [
        BenchStrangersCommand.self, BenchFormsCommand.self, BenchMarmotCommand.self,
        BenchNextcloudCommand.self, BenchZulipSealsCommand.self, BenchNextcloudSealsCommand.self,
        BenchSessionCommand.self, SwarmCommand.self, BenchStatusCommand.self
    ]
}
