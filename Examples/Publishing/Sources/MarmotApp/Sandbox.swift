import Foundation
import MarmotPublishing

/// The server of `sealbell serve --sandbox`: it wakes Alice's phone at the simulated push service.
enum Sandbox {
    /// What the server says of itself in `run.json` of its state directory.
    private struct RunFile: Decodable {
        let ca: String
        let publicKeys: [String: [String]]
        let urls: [String: String]
    }

    /// - Parameters:
    ///   - file: path of that `run.json`.
    ///   - token: of Alice's phone, in hex; the simulator takes any.
    static func play(_ file: String, token: String) async throws {
        let reader = JSONDecoder()
        reader.keyDecodingStrategy = .convertFromSnakeCase
        let run = try reader.decode(RunFile.self, from: Data(contentsOf: URL(fileURLWithPath: file)))
        guard let inbox = run.urls["sandbox-nostr"],
            let server = run.publicKeys["marmot-main"]?.first.flatMap({ XOnlyKey(hex: $0) })
        else { throw Failure("the sandbox has a server of Marmot") }
        let digits = Array(token)
        let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(digits[$0...$0 + 1]), radix: 16)
        }
        guard bytes.count == 32, digits.count == 64 else { throw Failure("a token has 64 digits") }

        var settings = MarmotPublisher.Settings(lookUp: [inbox])
        // Its relay has a certificate that the sandbox has made.
        settings.authorities = Secret(run.ca.utf8)
        let members = try await Members(
            server: server, inbox: inbox, tokenOfAlice: bytes, publisher: try MarmotPublisher(settings))
        try await members.wakeOthers()
        print("Bob's trigger is at \(inbox), and the server hears it there")
    }
}
