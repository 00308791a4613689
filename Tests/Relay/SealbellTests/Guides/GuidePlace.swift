import Crypto
import Foundation
import PushTesting
import Simulators
import Testing

@testable import RelayProgram

/// A machine for one page: a network with nothing but loopback, and its own `/etc`, `/var/lib`, `/srv`,
/// `/usr/local/bin` and `/tmp`, so that the page's paths and ports are free and are the page's own.
final class GuidePlace {
    /// The reader's working directory, as the place sees it.
    static let home = "/mnt/home"
    private static let path = "/mnt/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    /// What no relay brings, and not every machine has: it notes how it was called.
    private static let standIns = [
        "systemctl", "systemd-analyze", "journalctl", "editor", "occ", "wakunode2", "make", "apt", "buildah",
        "docker", "swift", "ssh"
    ]

    let folder: TemporaryFolder
    private let holder: Program
    private(set) var serving: [Program] = []

    /// Whether this machine and user can have one.
    static let isToBeHad: Bool = {
        guard geteuid() == 0 else { return false }
        let probe = Process()
        probe.executableURL = URL(filePath: "/usr/bin/unshare")
        probe.arguments = ["-mn", "true"]
        probe.standardError = FileHandle.nullDevice
        // A system without the program has no namespaces either.
        guard (try? probe.run()) != nil else { return false }
        probe.waitUntilExit()
        return probe.terminationStatus == 0
    }()

    init() async throws {
        folder = try TemporaryFolder()
        for name in ["etc", "lib", "srv", "home", "bin", "backup"] {
            try FileManager.default.createDirectory(
                atPath: folder.file(name), withIntermediateDirectories: true)
        }
        for name in Self.standIns {
            try folder.write("#!/bin/sh\necho \"\(name) $*\" >> /mnt/calls\n", to: "bin/" + name)
            chmod(folder.file("bin/" + name), 0o755)
        }
        try folder.write("", to: "calls")
        try folder.write("", to: "bin/sealbell")
        try folder.write(Self.setUp, to: "set-up")
        holder = try Program(
            ["-mn", "bash", folder.file("set-up"), folder.path, try #require(Program.path)],
            of: "/usr/bin/unshare", in: folder.path)
        guard await holder.says("there it is") else {
            holder.signal(SIGTERM)
            throw Fault(said: holder.text)
        }
        try folder.write(P256.Signing.PrivateKey().pemRepresentation, to: "home/AuthKey_F6G7H8I9J0.p8")
        let account = try ServiceAccount().json(tokenURI: "https://oauth2.googleapis.com/token")
        try folder.write(account, to: "home/acme-firebase.json")
    }

    struct Fault: Error { let said: String }

    /// Python brings loopback up, for not every machine has `ip`. Names are asked of nobody.
    private static let setUp = #"""
        set -e
        mount --bind "$1" /mnt
        mount --bind "$2" /mnt/bin/sealbell
        cp -a /etc/. /mnt/etc/
        rm -f /mnt/etc/resolv.conf /mnt/etc/hosts
        rm -rf /mnt/etc/sealbell
        echo 'nameserver 127.0.0.1' > /mnt/etc/resolv.conf
        echo '127.0.0.1 localhost push.acme.example cloud.acme.example chat.acme.example' > /mnt/etc/hosts
        mount --bind /mnt/etc /etc
        mount --bind /mnt/lib /var/lib
        mount --bind /mnt/srv /srv
        mount -t tmpfs tmpfs /tmp
        mount -t tmpfs tmpfs /usr/local/bin
        /usr/bin/python3 -c '
        import fcntl, socket, struct
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as some:
            fcntl.ioctl(some, 0x8914, struct.pack("16sh14x", b"lo", 0x41))
        '
        echo there it is
        exec sleep 3600
        """#

    /// Starts a command line as the reader's shell would, in the working directory.
    func start(_ command: String) throws -> Program {
        try Program(
            [
                "-t", "\(holder.pid)", "-m", "-n", "env", "-C", Self.home, "HOME=" + Self.home,
                "PATH=" + Self.path, "bash", "-c", command
            ], of: "/usr/bin/nsenter", in: folder.path)
    }

    /// Runs a command line to its end.
    func run(_ command: String) async throws -> (status: Int32?, said: String) {
        let program = try start(command)
        await program.silence()
        return (await program.status(), program.text)
    }

    /// Runs what belongs to the stage and not to the page.
    @discardableResult
    func prepare(_ command: String) async throws -> String {
        let (status, said) = try await run(command)
        guard status == 0 else { throw Fault(said: command + "\n" + said) }
        return said
    }

    /// Starts a program that serves until the end, and returns when it has said that it does.
    @discardableResult
    func serve(_ command: String, until words: String = #""event":"started""#) async throws -> Program {
        let program = try start(command)
        serving.append(program)
        guard await program.says(words) else { throw Fault(said: command + "\n" + program.text) }
        return program
    }

    /// Ends one that serves, as the system does.
    func stop(_ program: Program) async {
        serving.removeAll { $0 === program }
        await program.stop()
    }

    /// Ends whatever still serves, and the place itself.
    func end() async {
        for program in serving { program.signal(SIGTERM) }
        for program in serving { #expect(await program.status() == 0, "\(program.text)") }
        holder.signal(SIGTERM)
        _ = await holder.status()
    }

    /// Writes a file at a path of the place: below `/etc`, `/var/lib`, or the working directory.
    func put(_ text: String, at path: String) throws {
        let name =
            path.hasPrefix("/etc/") ? String(path.dropFirst()) : path.hasPrefix("/") ? nil : "home/" + path
        let file = folder.file(try #require(name))
        try FileManager.default.createDirectory(
            at: URL(filePath: file).deletingLastPathComponent(), withIntermediateDirectories: true)
        try writeFile(file, Array(text.utf8), replacing: true)
    }

    /// How stand-ins were called.
    var calls: [Substring] { get throws { try folder.read("calls").split(separator: "\n") } }

    /// What a relay says of itself.
    func runFile(_ state: String) async throws -> RunFile {
        let text = try await prepare("cat \(state)/run.json")
        return try JSONDecoder().decode(RunFile.self, from: Data(text.utf8))
    }
}
