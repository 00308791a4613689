import NextcloudPush
package import PushModel
package import SealbellKit
package import Uplink

/// All that an origin owes: to its relay, and to proxies.
package struct OriginOffice: UplinkOffice {
    private let relay: ZulipOffice
    private let proxies: NextcloudUsers

    package init(relay: ZulipOffice, proxies: NextcloudUsers) {
        self.relay = relay
        self.proxies = proxies
    }

    package func leave(of message: UplinkMessage) async -> UplinkLeave {
        guard message.kind == .proxy else { return await relay.leave(of: message) }
        guard let subject = ProxySubject(message.subject) else { return .void }
        return .granted(
            proxies.headers(of: subject), publicAddressesOnly: proxies.takesPublicProxiesOnly)
    }

    package func take(
        _ answer: CallAnswer, to message: UplinkMessage, of call: PushID
    ) async -> UplinkVerdict {
        guard message.kind == .proxy else { return await relay.take(answer, to: message, of: call) }
        guard let subject = ProxySubject(message.subject) else { return .refused }
        do throws(OriginError) {
            let (again, isLost) = try await proxies.settle(answer, subject)
            if let again { return .again(after: again, blames: true) }
            return isLost ? .refused : .done
        } catch { return .uncommitted }
    }
}
