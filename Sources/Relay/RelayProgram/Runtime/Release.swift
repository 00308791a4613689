import PushModel

/// Which release this program is of.
enum Release {
    static let code = NoteCode("0.1.0")
    static let version = code.text
}
