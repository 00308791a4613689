#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import PushModel

/// Whether the relay may open as many files and sockets as its configuration asks for.
struct DescriptorChecks {
    let configuration: RelayConfiguration
    /// Of the running relay, where the system tells; else of a relay that this user would start from here.
    let limit: Int?

    init(_ configuration: RelayConfiguration, limit: Int?) {
        self.configuration = configuration
        self.limit = limit
    }

    init(_ configuration: RelayConfiguration) {
        var pid: Int32?
        // An unreadable run file says no more than an absent one.
        if case .running(let file)? = try? RunFile.find(state: configuration.state) { pid = file.pid }
        let running = pid.flatMap { Self.limit(of: $0) }
        self.init(configuration, limit: running ?? ProcessLimits.mostOpenFiles())
    }

    func check() -> [Finding] {
        let subject = "limits.connections"
        guard let limit else { return [] }
        guard let shortage = DescriptorBudget(configuration, limit: limit).shortage else {
            return [
                .good(.ports, subject, "A relay may open \(limit) files, enough for its connections.")
            ]
        }
        return [.warning(.ports, subject, shortage)]
    }

    /// The soft limit of a running process, which it has raised itself; `nil` where the system does not tell.
    static func limit(of pid: Int32) -> Int? {
        // The name, then soft and hard limit (proc(5)).
        guard let file = fopen("/proc/\(pid)/limits", "r") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        // Sixteen limits, one a line: the loop ends with the file.
        while fgets(&line, Int32(line.count), file) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            guard text.hasPrefix("Max open files") else { continue }
            return text.dropFirst(14).split(separator: " ").first.flatMap { Int($0) }
        }
        return nil
    }
}
