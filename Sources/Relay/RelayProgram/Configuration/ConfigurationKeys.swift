/// Every key there is but those of instances and push services, by the mapping it stands in.
/// `docs/configuration.md` has a row for each; a test compares.
enum ConfigurationKeys {
    static let root = [
        "state", "store", "listeners", "log", "apps", "instances", "proxy", "limits", "alerts", "origin",
        "history"
    ]
    static let store = ["url", "password_file", "keys"]
    static let listener = ["bind", "serves", "trusted_proxies", "tls", "token_file"]
    static let tls = ["cert", "key"]
    static let log = ["level", "format"]
    /// Beside the words of push services.
    static let app = ["fallback"]
    static let fallback = ["title", "body", "title_loc_key", "loc_key", "sound", "category"]
    static let limits = ["outbox", "pushes_per_minute", "connections"]
    static let outbox = ["rows", "bytes"]
    static let alerts = ["log", "gauge", "overdue_minutes", "webhook", "mail"]
    static let webhook = ["url", "secret_file", "ca"]
    static let mail = ["command", "to"]
}
