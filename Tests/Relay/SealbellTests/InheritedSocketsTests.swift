#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import PushModel
import PushTesting
import Testing

@testable import RelayProgram

@Suite("Sockets that a service manager hands over", .timeLimit(.minutes(30)))
struct InheritedSocketsTests {
    /// Sockets on descriptors in a row, as they are handed over; closed at the end.
    ///
    /// The kernel chooses the row among descriptors that are free: tests run beside each other, and a number
    /// chosen here could be another's.
    private final class Row {
        private(set) var descriptors: [CInt] = []
        private(set) var ports: [Int] = []
        var first: CInt { descriptors[0] }

        /// - Parameter listening: which of them listen.
        init(_ listening: [Bool]) throws {
            var made: [CInt] = []
            defer { for descriptor in made { close(descriptor) } }
            for listens in listening {
                let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
                try #require(descriptor >= 0)
                made.append(descriptor)
                ports.append(try Self.bindToLoopback(descriptor))
                if listens { try #require(listen(descriptor, 5) == 0) }
            }
            // Another's descriptor may fall between two of ours: then further up.
            var lowest: CInt = 400
            while descriptors.count < made.count {
                let copy = fcntl(made[descriptors.count], F_DUPFD, lowest)
                try #require(copy >= 0, "no \(made.count) descriptors in a row are free")
                if let last = descriptors.last, copy != last + 1 {
                    for descriptor in descriptors { close(descriptor) }
                    close(copy)
                    descriptors = []
                } else {
                    descriptors.append(copy)
                }
                lowest = copy + 1
            }
        }

        deinit { for descriptor in descriptors { close(descriptor) } }

        private static func bindToLoopback(_ descriptor: CInt) throws -> Int {
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isBound = withUnsafeMutablePointer(to: &name) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
                }
            }
            try #require(isBound)
            return Int(UInt16(bigEndian: name.sin_port))
        }
    }

    private func facts(_ environment: [String: String]) -> ProcessFacts {
        ProcessFacts(
            environment: environment, isRoot: false, home: nil, isTerminal: false, workingDirectory: "/",
            processID: 4711)
    }

    private func listener(_ name: String, port: Int) throws -> ListenerConfiguration {
        ListenerConfiguration(
            name: try #require(ConfiguredName(name)),
            bind: try #require(BindAddress("127.0.0.1:\(port)")), purpose: .admin(tokenFile: nil),
            trustedProxies: [])
    }

    @Test("They go to the listener of their name, else to the one of their address")
    func match() throws {
        let row = try Row([true, true, true])
        let sockets = try InheritedSockets(
            facts([
                "LISTEN_PID": "4711", "LISTEN_FDS": "3", "LISTEN_FDNAMES": "public:sealbell.socket:public"
            ]), from: row.first)
        #expect(sockets.sockets.map(\.port) == row.ports)
        for index in 0..<3 { #expect(fcntl(row.first + CInt(index), F_GETFD) == FD_CLOEXEC) }
        let (door, admin) = (try listener("public", port: 1), try listener("admin", port: row.ports[1]))
        #expect(
            try sockets.match([door, admin])
                == [door.name: [row.first, row.first + 2], admin.name: [row.first + 1]])
        #expect(throws: CommandFailure.self) { try sockets.match([door]) }
    }

    @Test("A relay says where its sockets are, wherever the configuration would have had its listeners")
    func whereabouts() async throws {
        let row = try Row([true])
        let text = RelayStage.text.replacing(
            "admin: { bind: \"127.0.0.1:0\" }", with: "admin: { bind: \"[::1]:0\" }")
        let sockets = [configured("admin"): [row.first]]
        try await RelayStage.running(text, spans: { $0.sockets = sockets }) { relay in
            #expect(relay.urls["admin"] == "http://127.0.0.1:\(row.ports[0])")
            let asked = try await Operator(relay).run("status")
            #expect(asked.status == .done, "\(asked.all)")
        }
    }

    @Test(
        "Those of another process, or none, are none",
        arguments: [
            [:], ["LISTEN_FDS": "1"], ["LISTEN_PID": "1", "LISTEN_FDS": "1"],
            ["LISTEN_PID": "4711", "LISTEN_FDS": "0"], ["LISTEN_PID": "4711", "LISTEN_FDS": "-1"],
            ["LISTEN_PID": "4711", "LISTEN_FDS": "many"], ["LISTEN_PID": "4711", "LISTEN_FDS": "257"]
        ])
    func none(_ environment: [String: String]) throws {
        #expect(try InheritedSockets(facts(environment)).sockets.isEmpty)
    }

    @Test("What does not listen, and what is no socket, is refused at the start")
    func unusable() throws {
        let row = try Row([true, false])
        let environment = ["LISTEN_PID": "4711", "LISTEN_FDS": "2"]
        #expect(throws: CommandFailure.self) { try InheritedSockets(facts(environment), from: row.first) }
        let file = open("/dev/null", O_RDONLY)
        try #require(file >= 0)
        defer { close(file) }
        #expect(throws: CommandFailure.self) { try InheritedSockets(facts(environment), from: file) }
    }
}
