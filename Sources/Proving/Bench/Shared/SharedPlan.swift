import PushModel

/// One or several relays on one store, under load in windows, so that the cost of a push can be compared
/// between one window and another.
package struct SharedPlan: Sendable {
    /// Where the pushes go: a server that is there already, by its base URL and the PEM text of its
    /// authority.
    package struct Sink: Sendable {
        package var url: String
        package var authority: String

        package init(url: String, authority: String) {
            self.url = url
            self.authority = authority
        }
    }

    package var sink: Sink
    package var store: RelayPlan.Store
    /// The database server's first process; its CPU time and that of all its children is read.
    package var databasePID: Int32?
    package var executable: String
    /// An empty directory of the trial's own.
    package var directory: String
    package var relays = 1
    /// How many registrations stand before each series of windows; each step adds to the one before.
    package var registrations = [10_000]
    /// Windows of load in each series.
    package var windows = 3
    package var seconds = 10.0
    /// Pushes a second, of all relays together; `nil`: as many as go.
    package var rate: Double?
    package var devicesPerRequest = 10
    /// The driver's connections to each relay. To compare numbers of relays, divide one sum among them: what
    /// is under way at once is then the same, and with it what the processors' caches have to hold.
    package var connections = 128
    /// Run by a shell beside the load, from the end of the third window on: a reader that holds an old
    /// snapshot. `{state}` in it stands for the first relay's state directory.
    package var beside: String?
    /// Free bytes that must be there at `freeAt` before anything is begun.
    package var freeBytes: Int64 = 0
    package var freeAt: String
    /// Plaintext before it is sealed.
    package var contentBytes = 256

    package init(sink: Sink, store: RelayPlan.Store, executable: String, directory: String) {
        self.sink = sink
        self.store = store
        self.executable = executable
        self.directory = directory
        freeAt = directory
    }

    /// Devices that are pushed to, spread over all registrations.
    static let targets = 10_000
    /// Windows before the reader begins: what they cost is what later ones are compared with.
    static let windowsAlone = 3
    /// Registrations made ready at a time: some 20 MB of requests.
    static let chunk = 20_000
    static let warmUpPushes = 5_000
    /// With no rate, so many pushes a second are made ready for the first window.
    static let mostPerSecond = 45_000.0
    /// From the last request's moment until unanswered ones are given up.
    static let patience: Duration = .seconds(20)

    func check() throws(BenchError) {
        let isFile =
            switch store {
            case .sqlite, .sqliteWithoutSync, .memory: true
            case .postgres, .postgresWithoutSync: false
            }
        let isSane =
            (1...16).contains(relays) && (relays == 1 || !isFile) && !registrations.isEmpty
            && registrations.allSatisfy { $0 >= devicesPerRequest && $0 <= 20_000_000 }
            && zip(registrations, registrations.dropFirst()).allSatisfy { $0 < $1 }
            && (1...10_000).contains(windows) && seconds > 0 && seconds <= 3_600 && (rate ?? 1) > 0
            && (1...1_000).contains(devicesPerRequest) && (1...2_000).contains(connections)
            && (1...2_000).contains(contentBytes)
        guard isSane else { throw BenchError(.badPlan) }
    }
}
