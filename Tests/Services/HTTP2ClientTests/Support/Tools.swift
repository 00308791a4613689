import Foundation
import NIOCore
import NIOPosix
import PushTesting

/// Why a test's peer could not be had. A missing tool fails the test: a skipped peer would be silence.
enum PeerFault: Error { case missingTool(String), toolFailed(String), notListening(String) }

/// Programs of the system.
enum Tool {
    /// The path of a program, in `PATH` or where Debian puts servers.
    static func find(_ name: String) throws -> String {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        for folder in path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/bin", "/sbin"] {
            let candidate = "\(folder)/\(name)"
            if FileManager.default.isExecutableFile(atPath: candidate) { return candidate }
        }
        throw PeerFault.missingTool(name)
    }

    static func run(_ name: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try find(name))
        process.arguments = arguments
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw PeerFault.toolFailed(name) }
    }
}

/// A self-signed certificate for a name and 127.0.0.1, made by openssl once for the whole run.
struct TestCertificate: Sendable {
    let scratch: TemporaryFolder
    var certificateFile: String { scratch.path + "/cert.pem" }
    var keyFile: String { scratch.path + "/key.pem" }
    let pem: [UInt8]

    static let shared = Result { try TestCertificate() }
    /// Carries 127.0.0.1 too, but another host's name.
    static let otherName = Result { try TestCertificate(name: "other.example") }

    private init(name: String = "localhost") throws {
        scratch = try TemporaryFolder()
        try Tool.run(
            "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-days", "2",
                "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:\(name),IP:127.0.0.1",
                "-keyout", scratch.path + "/key.pem", "-out", scratch.path + "/cert.pem"
            ])
        pem = Array(try scratch.read("cert.pem").utf8)
    }
}

/// A server of the system, on a free port of 127.0.0.1, ended with its holder.
final class ForeignPeer: @unchecked Sendable {
    // Safety: the process is started in the initialiser and ended in `stop` or `deinit` only.
    let port: Int
    let scratch: TemporaryFolder
    private let process = Process()

    private init(_ tool: String, scratch: TemporaryFolder, port: Int, arguments: [String]) async throws {
        self.port = port
        self.scratch = scratch
        process.executableURL = URL(fileURLWithPath: try Tool.find(tool))
        process.arguments = arguments
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        let isThere = try await watchOutside {
            guard process.isRunning else { throw PeerFault.toolFailed(tool) }
            return await Self.listens(port)
        }
        guard isThere else { throw PeerFault.notListening(tool) }
    }

    deinit { stop() }

    func stop() {
        guard process.isRunning else { return }
        // The child inherits a mask in which SIGTERM is blocked, so it is not asked but ended.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// nghttpd (Debian package `nghttp2`): serves files, answers a POST to one with its content.
    static func nghttpd(streams: Int = 100, files: [String]) async throws -> ForeignPeer {
        let certificate = try TestCertificate.shared.get()
        let scratch = try TemporaryFolder()
        for file in files {
            let folder = scratch.path + "/" + (file as NSString).deletingLastPathComponent
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try Data().write(to: URL(fileURLWithPath: scratch.path + "/" + file))
        }
        let port = try freePort()
        return try await ForeignPeer(
            "nghttpd", scratch: scratch, port: port,
            arguments: [
                "-a", "127.0.0.1", "-n", "1", "-m", String(streams), "-d", scratch.path, String(port),
                certificate.keyFile, certificate.certificateFile
            ])
    }

    /// nginx: answers 200 to everything and logs each request's `apns-id`, one a line, to `requests.log`.
    static func nginx(keepaliveRequests: Int, streams: Int = 128) async throws -> ForeignPeer {
        let certificate = try TestCertificate.shared.get()
        let scratch = try TemporaryFolder()
        let port = try freePort()
        let file = try scratch.write(
            """
            daemon off; master_process off; pid \(scratch.path)/pid; error_log /dev/null crit;
            events { worker_connections 512; }
            http {
              log_format ids '$http_apns_id $status';
              access_log \(scratch.path)/requests.log ids;
              client_body_temp_path \(scratch.path)/body; proxy_temp_path \(scratch.path)/proxy;
              fastcgi_temp_path \(scratch.path)/fastcgi; uwsgi_temp_path \(scratch.path)/uwsgi;
              scgi_temp_path \(scratch.path)/scgi;
              keepalive_requests \(keepaliveRequests); http2_max_concurrent_streams \(streams);
              server {
                listen 127.0.0.1:\(port) ssl http2;
                ssl_certificate \(certificate.certificateFile); ssl_certificate_key \(certificate.keyFile);
                location / { return 200; }
              }
            }
            """, to: "nginx.conf")
        return try await ForeignPeer(
            "nginx", scratch: scratch, port: port, arguments: ["-c", file, "-p", scratch.path])
    }

    private static func listens(_ port: Int) async -> Bool {
        let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(
            .minutes(10))
        // Refused: not yet. A connection that is there may end as it likes.
        guard let channel = try? await bootstrap.connect(host: "127.0.0.1", port: port).get() else {
            return false
        }
        try? await channel.close().get()
        return true
    }

    static func freePort() throws -> Int {
        let channel = try ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).wait()
        let port = channel.localAddress?.port ?? 0
        try channel.close().wait()
        return port
    }
}
