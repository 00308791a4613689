import PushModel

/// The push services that there are. This list, the folders beside it, the services' own targets and their
/// files in the model are the only places that name one.
struct HostedServices: Sendable, Hashable {
    static let standard = HostedServices([APNsService.self, FCMService.self])
    /// Keys of services that a later release speaks.
    static let planned = ["web_push", "huawei"]

    /// In the order in which an app's are looked at.
    let all: [any HostedService.Type]
    /// What a store may owe.
    let messages: PushServices

    /// - Parameter all: each with a word of its own.
    init(_ all: [any HostedService.Type]) {
        self.all = all
        messages = PushServices(all.map { $0.message })
    }

    subscript(word: String) -> (any HostedService.Type)? { all.first { $0.word == word } }

    var words: [String] { all.map { $0.word } }

    /// The words as a sentence offers them: `a, b or c`.
    var choice: String { words.listed("or") }

    /// What to say of an app that has none.
    var needed: String {
        "An app has \(words.joined(separator: ", ")), or \(words.count == 2 ? "both" : "several of them")."
    }

    /// Where else to look when one of them does not answer.
    var detours: String? {
        let found = all.compactMap { $0.detour }
        return found.isEmpty ? nil : found.listed("and")
    }

    /// What a sandbox simulates.
    var simulated: String { all.map { $0.simulated }.listed("and") }

    static func == (left: HostedServices, right: HostedServices) -> Bool { left.words == right.words }
    func hash(into hasher: inout Hasher) { hasher.combine(words) }
}
