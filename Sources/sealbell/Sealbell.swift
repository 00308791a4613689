import ArgumentParser

@main
struct Sealbell: AsyncParsableCommand {
    func run() async throws {}
}
