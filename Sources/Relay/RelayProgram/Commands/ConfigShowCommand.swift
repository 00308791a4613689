import ArgumentParser
import PushModel

/// `sealbell config show`: what is in force, and where each value came from.
struct ConfigShowCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Shows the configuration in force, and where each value came from.",
        discussion: """
            A value comes from a line of the file, from the environment, from the command line, or is a \
            default. Paths are shown as they are used. The configuration names secrets by their files and \
            holds none; of web addresses only the host is shown, and of commands only the program. Ends with \
            78 when the configuration has a fault.
            """)

    @OptionGroup var reading: ConfigurationReading

    func run(_ shell: Shell) async throws -> Ending {
        let record = ConfigurationRecord()
        let configuration = try ConfigurationLoader.load(
            reading.request, shell.facts, shell.hosting.vocabulary, into: record)
        if reading.json {
            let values = record.all.map { Value($0, configuration.file) }
            shell.out(try jsonText(Shown(file: configuration.file, values: values)))
        } else {
            let rows = record.all.map { entry in
                [entry.path, entry.value, entry.source.place(configuration.file)]
            }
            TextTable.lines(["KEY", "VALUE", "FROM"], rows, isStyled: shell.isStyled).forEach(shell.out)
        }
        return .done
    }

    private struct Shown: Encodable {
        let file: String?
        let values: [Value]
    }

    private struct Value: Encodable {
        let path: String
        let value: String
        /// `file`, `default`, `command line`, or the variable's name.
        let source: String
        let line: Int?

        init(_ entry: ConfigurationRecord.Entry, _ file: String?) {
            (path, value) = (entry.path, entry.value)
            source = entry.source.words { _ in "file" }
            line = if case .file(let line) = entry.source, file != nil { line } else { nil }
        }
    }
}
