import NIOCore
import PushModel
import WebClient

/// The way to a running relay's admin listener, for commands on its machine.
struct AdminDoor: Sendable {
    enum Fault: Error, Sendable {
        /// Nobody answers there, or TLS fails.
        case unreachable
        /// It does not even say that it serves.
        case silent
        /// It serves, and this answer did not come.
        case late
        /// What answers is no relay.
        case foreign
    }

    /// Answered to anybody, and at once: it asks no store.
    static let livePath = "/health/live"

    let url: String
    let pid: Int32
    private let call: LocalCall
    private let silence: TimeAmount

    /// - Parameters:
    ///   - authority: PEM, as of ``LocalCall``.
    ///   - checksCertificate: as of ``LocalCall``.
    /// - Returns: `nil` when the URL or the authority cannot be used.
    init?(
        _ url: String, pid: Int32, authority: [UInt8]? = nil, checksCertificate: Bool = true, _ shell: Shell
    ) {
        guard
            let call = LocalCall(
                url: url, authority: authority, checksCertificate: checksCertificate,
                deadline: shell.patience)
        else { return nil }
        (self.url, self.pid, self.call, silence) = (url, pid, call, shell.silence)
    }

    /// Asks for the listener's health, and then what was to be asked. So a relay that hangs is known within
    /// ``Shell/silence``, and work that takes long still has the whole ``Shell/patience``.
    func ask(
        _ method: String, _ path: String, headers: [(name: String, value: Secret)] = [], body: Secret? = nil
    ) async throws(Fault) -> LocalCall.Answer {
        _ = try await live()
        do throws(LocalCall.Fault) {
            return try await call.ask(method, path, headers: headers, body: body)
        } catch {
            throw error == .noAnswer ? .late : Fault(error)
        }
    }

    /// What the listener says of its health: 200 from a relay that serves.
    func live() async throws(Fault) -> LocalCall.Answer {
        do throws(LocalCall.Fault) {
            return try await call.within(silence).ask("GET", Self.livePath)
        } catch {
            throw Fault(error)
        }
    }

    /// What a fault means, and what to do.
    func sentence(_ fault: Fault) -> String {
        let relay = "The relay (process \(pid)) runs, and its listener \(url)"
        let isSecure = url.hasPrefix("https:")
        switch fault {
        case .unreachable where isSecure:
            return "\(relay) cannot be reached, or this machine does not trust its certificate for that "
                + "address: name the certificate's authority with --ca."
        case .unreachable, .silent:
            return "\(relay) gives no answer: it hangs, has no descriptor left, or is just stopping. Look at "
                + "its log; if it stays so, restart it."
        case .late:
            return "\(relay) serves, but this answer did not come within "
                + "\(patience) seconds. The relay may still be at it: look at its log before you ask again."
        case .foreign:
            return "\(relay) is answered by a program that is no relay of this version."
        }
    }

    private var patience: Int64 { call.deadline.nanoseconds / 1_000_000_000 }
}

extension AdminDoor.Fault {
    fileprivate init(_ fault: LocalCall.Fault) {
        self =
            switch fault {
            case .unreachable: .unreachable
            case .noAnswer: .silent
            case .malformed: .foreign
            }
    }
}
