import ArgumentParser
import Bench

/// The commands that each belong to one protocol.
enum StandardCommands {
    static let all: [any ParsableCommand.Type] = [
        BenchStrangersCommand.self, BenchFormsCommand.self, BesideCommand<MarmotBench>.self,
        BesideCommand<NextcloudBench>.self, BesideCommand<ZulipSealBench>.self,
        BesideCommand<NextcloudSealBench>.self,
        BenchSessionCommand.self, SwarmCommand.self, BenchStatusCommand.self
    ]
}
