import Delivery
import HTTP2Client
import NIOCore
import NIOPosix
import PushModel
import WebClient

/// `doctor --live`: asks each push service with the app's own credentials to deliver to somebody who does not
/// exist. What it refuses first tells what is wrong: the key, the app, or, as it should, the device.
///
/// Names, routes, address families, trust and proxies have findings of their own (``ReachChecks``).
struct LiveChecks {
    /// Lanes that are asked at once: each has a connection or two, and a relay of hundreds of apps must not
    /// open hundreds of them at one push service in a moment.
    private static let lanesAtOnce = 16

    private let configuration: RelayConfiguration
    private let world: World
    private let web: WebOptions
    private let limits: DeliveryLimits
    private let options: HTTP2Options

    init(
        _ configuration: RelayConfiguration, _ world: World, web: WebOptions = WebOptions(),
        limits: DeliveryLimits = DeliveryLimits(), options: HTTP2Options = HTTP2Options()
    ) {
        self.options = options
        (self.configuration, self.world, self.web, self.limits) = (configuration, world, web, limits)
    }

    func check() async -> [Finding] {
        let group = MultiThreadedEventLoopGroup.singleton
        var cache = CredentialCache(
            replacing: nil, proxy: configuration.proxy, world: world, journal: .silent
        ) { [configuration, web, world] authority in
            var options = Relay.options(configuration, web)
            if let authority { options.extraAuthorities.append(authority) }
            return HTTPSFetch(options, group: group, world: world)
        }
        let context = LaneContext(
            proxy: configuration.proxy, group: group, world: world, journal: .silent, options: options,
            isTrial: true)
        var trials: [(spec: DeliveryService.LaneSpec, settings: any ServiceSettings)] = []
        for app in configuration.apps {
            for settings in app.services {
                // A file that cannot be read has a finding of its own.
                guard let specs = try? settings.laneSpecs(of: app.name, on: context, &cache) else { continue }
                trials += specs.map { ($0, settings) }
            }
        }
        // Several lanes at a time: one that nobody answers must not hold the others up.
        return await withTaskGroup(of: (Int, [Finding]).self) { group in
            var found: [(Int, [Finding])] = []
            for (place, trial) in trials.enumerated() {
                if place >= Self.lanesAtOnce, let next = await group.next() { found.append(next) }
                group.addTask { (place, await check(trial.spec, trial.settings)) }
            }
            for await next in group { found.append(next) }
            return found.sorted { $0.0 < $1.0 }.flatMap(\.1)
        }
    }

    private func check(_ spec: DeliveryService.LaneSpec, _ settings: any ServiceSettings) async -> [Finding] {
        let trials = settings.trials.filter { $0.environment == spec.name.environment }
        guard !trials.isEmpty else { return [] }
        let results = await spec.trial(trials.map(\.message), world, limits)
        return zip(trials, results).map { trial, result in
            let subject = trial.subject.isEmpty ? "\(spec.name)" : "\(spec.name) \(trial.subject)"
            guard let answer = result.answer else {
                return .fault(.live, subject, "No connection could be made to ask it; see reach above.")
            }
            guard answer.isJudged else {
                return .warning(
                    .live, subject, "No answer came (\(answer.reason.rawValue)); see reach, and try again.")
            }
            return switch settings.verdict(on: answer) {
            case .good(let sentence): .good(.live, subject, sentence)
            case .warning(let sentence): .warning(.live, subject, sentence)
            case .fault(let sentence): .fault(.live, subject, sentence)
            }
        }
    }
}

extension Answer {
    /// The service's own word, or that of its credentials.
    fileprivate var isJudged: Bool { fate == .answered || reason == .credentialUnavailable }
}
