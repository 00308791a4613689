import MarmotPush
import WebSocket

extension RelayAnswer {
    init(_ publication: Publication, byTor: Bool) {
        switch publication {
        case .accepted: self = .accepted
        case .refused(let reason): self = .refused(reason)
        case .unfit: self = .unfit
        case .unanswered: self = .unanswered
        case .failed(.onionNeedsProxy), .failed(.forbiddenAddress): self = .forbidden
        case .failed(.proxyRefused): self = .torFailed
        case .failed(.unreachable) where byTor: self = .torFailed
        case .failed: self = .unreachable
        }
    }
}
