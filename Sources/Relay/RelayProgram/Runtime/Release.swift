import CBuild
import PushModel

/// Which release this program is of.
enum Release {
    static let code = NoteCode("0.1.0")
    static let version = code.text

    /// Of the sources; `nil` where the build was not told (`SEALBELL_COMMIT`).
    static let commit: String? = {
        let text = String(cString: sealbell_commit())
        return text.isEmpty ? nil : text
    }()

    /// How it was compiled.
    static let build: String = {
        #if DEBUG
        "debug"
        #else
        "release"
        #endif
    }()

    static let processor: String = {
        #if arch(x86_64)
        "x86_64"
        #elseif arch(arm64)
        "arm64"
        #else
        "another processor"
        #endif
    }()
}
