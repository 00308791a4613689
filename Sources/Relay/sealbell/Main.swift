import RelayProgram

@main
enum Main {
    static func main() async { await EntryPoint.sealbell() }
}
