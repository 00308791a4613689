import PushModel
import Simulators

/// A push service that apps are set up for: everything that this program must know of it beside its target,
/// in one folder (docs/guides/adding-a-push-service.md). ``Hosting`` lists them.
///
/// Configuration, wiring, desks, sandbox, reload and doctor go through the list and name none of them.
protocol HostedService: Sendable {
    /// What the keys of one app say.
    associatedtype Settings: ServiceSettings

    /// The key of `apps.NAME.<word>`.
    static var word: String { get }
    /// Its name in sentences.
    static var title: String { get }
    /// The keys below the word. One of them is `url`: where the service is, instead of its own hosts.
    static var keys: [String] { get }
    /// What the model knows of it, for the store.
    static var message: any ServiceMessage.Type { get }
    /// Lines of the built-in sandbox's app, such as `key_file: apns.p8`.
    static var sandboxKeys: [String] { get }
    /// What `config init` asks about it.
    static var setup: SetupPart { get }
    /// What a sandbox simulates of it, for a help text.
    static var simulated: String { get }
    /// Where else to look when no answer comes, as the end of a sentence; `nil`: nowhere.
    static var detour: String? { get }
    /// Reads the keys. Faults are noted in the cursor's context.
    ///
    /// - Returns: `nil` when a fault leaves nothing to go on with.
    static func read(_ cursor: MappingCursor) -> Settings?
    /// Its simulator, started, with the credentials of these apps.
    static func sandboxPeer(
        for apps: [AppConfiguration], on context: SandboxContext
    ) async throws -> any ServicePeer
}

extension HostedService {
    static var setup: SetupPart { SetupPart() }
    static var simulated: String { title }
    static var detour: String? { nil }
}

/// A simulated push service that stands beside a sandbox.
protocol ServicePeer: SandboxServer {
    /// Those that the sandbox's control endpoint turns and reads.
    var simulators: [any SteeredSimulator] { get }
    /// Points an app at it, and at the credentials that fit it; leaves apps without the service as they are.
    func point(_ app: inout AppConfiguration)
}

extension ServicePeer {
    var simulators: [any SteeredSimulator] { [] }
}

extension AppConfiguration {
    /// How the app is set up for a service.
    func settings(of hosted: any HostedService.Type) -> (any ServiceSettings)? {
        func find<Hosted: HostedService>(_: Hosted.Type) -> (any ServiceSettings)? {
            self[Hosted.Settings.self]
        }
        return find(hosted)
    }
}
