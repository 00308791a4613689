/// The protocols that there are. This list, the folders beside it and the protocols' own targets are the only
/// places that name one.
struct HostedProtocols: Sendable, Hashable {
    static let standard = HostedProtocols([ZulipProtocol.self, MarmotProtocol.self])
    /// Words of protocols that a later release speaks.
    static let planned = ["nextcloud", "session", "status", "gorush"]

    let all: [any HostedProtocol.Type]

    /// - Parameter all: each with a word of its own.
    init(_ all: [any HostedProtocol.Type]) { self.all = all }

    subscript(word: String) -> (any HostedProtocol.Type)? { all.first { $0.word == word } }

    var words: [String] { all.map { $0.word } }

    /// The words as a sentence lists them: `a, b and c`.
    var sentence: String { words.listed("and") }

    /// Of all of them (``HostedProtocol/metricHelp``).
    var metricHelp: [String: String] { all.reduce(into: [:]) { $0.merge($1.metricHelp) { $1 } } }

    static func == (left: HostedProtocols, right: HostedProtocols) -> Bool { left.words == right.words }
    func hash(into hasher: inout Hasher) { hasher.combine(words) }
}
