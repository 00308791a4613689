import PostgresStore
import PushModel

/// Text of our own configuration or command line, or a sentence of ours about them: a path, an address that
/// we listen on, what an operator should do. Nothing that a peer sent, and no content of a file.
struct ConfiguredText: LogSafe {
    let logText: String

    init(_ text: String) { logText = text }
}

extension Ending {
    /// In a log.
    var logged: ErrorCode {
        switch self {
        case .done: ErrorCode("done")
        case .failed: ErrorCode("failed")
        case .usage: ErrorCode("usage")
        case .unavailable: ErrorCode("unavailable")
        case .software: ErrorCode("software")
        case .configuration: ErrorCode("configuration")
        }
    }
}

extension StoreConfiguration {
    /// Where the store is, as a log may say it: without a password, which no URL of ours holds.
    var logged: ConfiguredText {
        switch engine {
        case .memory: ConfiguredText("memory")
        case .sqlite(let path): ConfiguredText("sqlite:\(path)")
        case .postgres(let url, let passwordFile):
            // A URL that cannot be read ends the start, and names itself there.
            ConfiguredText((try? StorePlace.address(url, passwordFile))?.description ?? "postgresql")
        }
    }
}
