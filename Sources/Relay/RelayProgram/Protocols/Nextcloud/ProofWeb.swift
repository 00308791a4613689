import PushModel
import WebClient

/// The way of identity proofs: hosts of strangers' choice at public addresses alone, and hosts that the
/// operator has named for it (`private_hosts`) wherever they are.
struct ProofWeb: WebFetch {
    /// For everybody else.
    let general: any WebFetch
    /// Trusts the instance's own authority, and goes through no proxy: these hosts are in our own network.
    let own: any WebFetch
    /// With their ports, so that no other service of such a host can be reached.
    let hosts: Set<HTTPSBase>

    func fetch(_ request: WebRequest) async throws(WebError) -> WebAnswer {
        let address = try WebAddress(request.url)
        guard hosts.contains(HTTPSBase(host: address.host, port: address.port)) else {
            return try await general.fetch(request)
        }
        var request = request
        request.publicAddressesOnly = false
        return try await own.fetch(request)
    }
}

extension RelaySpans {
    private enum NextcloudProof: SpanKey { static let standard = Duration.zero }

    /// No identity proof gives up sooner, whatever its deadline: for tests that are of none.
    var nextcloudProof: Duration {
        get { self[NextcloudProof.self] }
        set { self[NextcloudProof.self] = newValue }
    }
}

extension ProofWeb {
    init(_ settings: NextcloudSettings, on context: HostingContext) {
        var options = WebOptions(extraAuthorities: settings.caFile.map { [$0] } ?? [])
        options.leastDeadline = context.spans.nextcloudProof
        options.connectDeadline = max(options.connectDeadline, context.spans.nextcloudProof)
        self.init(
            general: context.web, own: HTTPSFetch(options, group: context.group, world: context.world),
            hosts: settings.privateHosts)
    }
}
