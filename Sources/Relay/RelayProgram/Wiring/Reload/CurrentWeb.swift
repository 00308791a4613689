import PushModel
import Synchronization

/// The way of fetches by the configuration in force: a reload exchanges it, and fetches under way end as they
/// began.
final class CurrentWeb: WebFetch {
    private let current: Mutex<any WebFetch>

    init(_ web: any WebFetch) { current = Mutex(web) }

    func adopt(_ web: any WebFetch) { current.withLock { $0 = web } }

    func fetch(_ request: WebRequest) async throws(WebError) -> WebAnswer {
        try await current.withLock { $0 }.fetch(request)
    }
}
