import PushModel

/// What `config init` asks about one protocol or push service, and writes of it.
struct SetupPart: Sendable {
    struct Question: Sendable {
        enum Form: Sendable, Hashable {
            case text
            /// Answered with commas between.
            case list
            /// A credential; one that lies elsewhere is copied beside the configuration, under this name.
            case file(String)
            /// The one key of a mapping.
            case member(String)
        }

        let key: String
        /// As a person is asked, without the question mark.
        let words: String
        var form = Form.text
        /// What counts when nothing is said; `nil`: an answer is needed.
        var standard: String?
    }

    /// A file of keys that the relay's own side makes.
    struct Keys: Sendable {
        let key: String
        let name: String
        /// Writes the file, which is not there yet.
        ///
        /// - Returns: the public half, which goes into the app.
        let make: @Sendable (String, World) throws(CommandFailure) -> String
    }

    var questions: [Question] = []
    /// Lines that stand in any case.
    var lines: [String] = []
    var keys: Keys?
    /// What to do elsewhere, one sentence each. `HOST` stands for the relay's public host name, `APP` for the
    /// app's name.
    var next: [String] = []
}
