#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation
import Synchronization

/// The shell that is a server's parent. It outlives this process for as long as it takes to end the server.
///
/// Its standard input is a pipe whose other end only this process holds. A line "start" starts the server.
/// When the pipe closes, as it does however this process ends, the shell stops the server and removes its
/// directory. The server is a child of the shell and not of `Foundation.Process`, which considers a child
/// running as long as any descendant holds the socket that it was given.
final class PostgresKeeper: Sendable {
    /// The arguments after `$1`, the cluster's directory, are the server's command line.
    private static let script = #"""
        trap '' INT TERM HUP
        home=$1
        shift
        server=
        lives() {
          [ -n "$server" ] && read -r _ _ state _ <"/proc/$server/stat" && [ "$state" != Z ]
        } 2>/dev/null
        while read -r word; do
          [ "$word" = start ] || continue
          [ -z "$server" ] || wait "$server"
          "$@" </dev/null >>"$home/log" 2>&1 &
          server=$!
          echo "$server" >"$home/pid.new"
          mv "$home/pid.new" "$home/pid"
        done
        if lives; then
          kill -CONT "$server"
          kill -QUIT "$server"
          waited=0
          while lives; do
            waited=$((waited + 1))
            # An immediate stop takes five seconds at most, by PostgreSQL's own account.
            if [ "$waited" -gt 100 ]; then kill -KILL "$server"; break; fi
            sleep 0.1
          done
        fi
        # A server that was killed leaves its page of shared memory: the second word of the seventh line.
        set -- $(sed -n 7p "$home/data/postmaster.pid" 2>/dev/null)
        [ $# -ne 2 ] || ipcrm -m "$2"
        rm -rf "$home" || { sleep 1; rm -rf "$home"; }
        """#

    private let process = Mutex<Process?>(nil)
    private let orders: Mutex<FileHandle?>
    private let ended = Noted(false)

    /// - Parameters:
    ///   - home: the cluster's directory; removed at the end.
    ///   - server: the command line that starts it.
    init(_ home: String, server: [String]) throws {
        // Another child that held this end would keep the server alive after us.
        let pipe = try PrivatePipe()
        orders = Mutex(pipe.writing)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", Self.script, "sealbell-keeper", home] + server
        process.environment = ["PATH": "/usr/bin:/bin", "LC_ALL": "C"]
        process.currentDirectoryURL = URL(fileURLWithPath: "/")
        process.standardInput = pipe.reading
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        process.terminationHandler = { [ended] _ in ended.set(true) }
        try process.run()
        self.process.withLock { $0 = process }
    }

    func start() throws {
        try orders.withLock { try $0?.write(contentsOf: Data("start\n".utf8)) }
    }

    /// The same that the end of this process would cause.
    func abandon() {
        orders.withLock { handle in
            // If the pipe is already closed, its work is done.
            try? handle?.close()
            handle = nil
        }
    }

    /// Ends the server and removes its directory; returns when both are gone.
    func end() async {
        abandon()
        await ended.until { $0 }
    }
}
