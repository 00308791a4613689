import PushModel
package import SealbellKit
import WireFormats

/// What is to be taken back for an account that leaves the phone: at the server, then at the proxy (§3.4). It
/// is kept until both have heard of it, and has the login's password until the server has.
package struct Unregistration: Sendable {
    enum Stage: String, Sendable { case atServer, atProxy }

    let serverURL: String
    /// Empty once the server has answered: the proxy asks for none.
    private(set) var authorization: Secret
    let userAgent: String
    let proxyUserAgent: String
    /// When it was first asked for; `nil`: not yet.
    var since: UnixTime?
    private(set) var stage = Stage.atServer
    private(set) var failures = 0
    private(set) var notBefore: UnixTime?

    package init(account: NextcloudAccount, app: NextcloudAppBuild) {
        serverURL = account.serverURL.withoutFinalSlashes
        authorization = account.basic
        (userAgent, proxyUserAgent) = (app.userAgent, app.proxyUserAgent)
    }

    /// - Parameter registration: what the server has given; `nil` where its answer never came, so that the
    ///   proxy knows nothing.
    /// - Returns: `nil` where nothing is left to be told.
    package func call(_ registration: DeviceRegistration?) -> HTTPCall? {
        switch stage {
        case .atServer:
            .ocs(
                "DELETE", serverURL + NextcloudPaths.push + "?format=json", authorization: authorization,
                userAgent: userAgent, type: nil, body: Secret([]))
        case .atProxy:
            registration.map {
                .proxyForm("DELETE", $0.proxyServer, userAgent: proxyUserAgent, $0.proof)
            }
        }
    }

    /// Takes the answer. Whatever the server says, the proxy is next, even where the app password is gone
    /// already; whatever the proxy says ends it.
    ///
    /// - Returns: whether the proxy has ended it.
    package mutating func settle(
        _ answer: CallAnswer, now: UnixTime, using generator: inout some RandomNumberGenerator
    ) -> Bool {
        if answer.mayPass {
            failures = min(failures, NextcloudBackoff.countedFailures) + 1
            notBefore =
                now
                + NextcloudBackoff.pause(
                    failures: failures, asked: answer.pause(now: now), using: &generator)
            return false
        }
        (failures, notBefore) = (0, nil)
        guard stage == .atServer else { return true }
        (stage, authorization) = (.atProxy, Secret([]))
        return false
    }

    // MARK: keeping

    /// Eight cells of a kept row.
    var cells: [Secret] {
        [serverURL, userAgent, proxyUserAgent, stage.rawValue, String(failures)].map { Secret(cell: $0) } + [
            Secret(cell: since), Secret(cell: notBefore), authorization
        ]
    }

    /// - Returns: `nil` for what ``cells`` has not written.
    init?(cells: [Secret]) {
        guard cells.count == 8, let stage = Stage(rawValue: cells[3].word),
            let failures = NextcloudBackoff.failures(cells[4].word), let since = cells[5].moment,
            let notBefore = cells[6].moment
        else { return nil }
        (serverURL, userAgent, proxyUserAgent) = (cells[0].word, cells[1].word, cells[2].word)
        (authorization, self.since, self.stage) = (cells[7], since, stage)
        (self.failures, self.notBefore) = (failures, notBefore)
    }
}
