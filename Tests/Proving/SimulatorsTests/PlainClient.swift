import NIOCore
import NIOHTTP1
import PushModel
import WebClient

@testable import Simulators

/// One HTTP/1.1 request to a simulator, over TLS or not.
enum PlainClient {
    struct NoAddress: Error {}

    static func ask(
        port: Int, trusting authority: CertificateAuthority?, _ method: HTTPMethod, _ path: String,
        headers: [(String, String)] = [], body: [UInt8] = []
    ) async throws -> LocalCall.Answer {
        let scheme = authority == nil ? "http" : "https"
        let pem = authority.map { Array($0.certificatePEM.utf8) }
        guard
            let call = LocalCall(
                url: "\(scheme)://127.0.0.1:\(port)", authority: pem, deadline: .minutes(10))
        else { throw NoAddress() }
        return try await call.ask(
            method.rawValue, path, headers: headers.map { (name: $0.0, value: Secret($0.1.utf8)) },
            body: Secret(body))
    }
}

extension LocalCall.Answer {
    var tree: JSONTree? { JSONTree(body) }

    /// The values of a field.
    subscript(_ name: String) -> [String] { headers.filter { $0.name == name }.map(\.value) }
}
