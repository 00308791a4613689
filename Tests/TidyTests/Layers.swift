/// What the manifest cannot say about who may import whom. The rest is in `Package.swift`: a target may import
/// the modules that it declares, and declares no other.
enum Layers {
    /// Folders of `Sources/`, the kit's too, lowest layer first. Arrows point down, from a row to one above it
    /// in this list.
    static let rows: [[String]] = [
        ["Foundations"], ["Protocols", "Delivery", "Services", "Stores"], ["Publishing"], ["Ingress"],
        ["Origin"], ["Relay"]
    ]
    /// The row whose targets never import each other.
    static let neighbours = 1
    /// What neighbours of one folder stand on: layer 1 in the folder of those who need it.
    static let shared: Set<String> = ["HTTP2Client"]
    /// Beside the relay: simulators, benches, test support.
    static let beside = "Proving"
    /// What the product has of them: its sandbox runs simulators.
    static let inProduct: Set<String> = ["Simulators"]
    /// Nouns and ports, below everything.
    static let bottom = "PushModel"

    /// The folder of targets that do no I/O and must build for a phone.
    static let protocols = "Protocols"
    /// Packages that may stand below them.
    static let phoneProducts: Set<String> = ["Crypto", "CryptoExtras"]

    /// Modules of the toolchain that any target may import.
    static let toolchain: Set<String> = ["Swift", "Synchronization", "Glibc", "Musl", "Darwin", "Dispatch"]
    /// Foundation is large, its parts differ from platform to platform, and much of it reads the environment or
    /// keeps state of its own. So a phone's code and the way of a push do without it: files, processes and
    /// dates are for these. Simulators read texts by it, because it is not the relay's own reader.
    static let foundation: Set<String> = [
        "SQLiteStore", "PostgresStore", "AdminIngress", "RelayProgram", "PushTesting", "Simulation",
        "Simulators", "Bench", "sealbell-bench", "sealbell-simulate"
    ]
}
