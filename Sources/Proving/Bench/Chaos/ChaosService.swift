import NIOCore
import PushModel
import Simulators

/// The push service of a chaos trial, and what is read from it.
final class ChaosService: Sendable {
    let apnsKey: APNsKey
    let authorityPEM: String
    let apnsURL: String
    let fcm: RelayPlan.FCM
    private let apns: APNsSimulator
    private let google: FCMSimulator

    init(authority: CertificateAuthority, group: any EventLoopGroup) async throws {
        apnsKey = APNsKey()
        authorityPEM = authority.certificatePEM
        var configuration = APNsSimulatorConfiguration(
            environment: .production, keys: [apnsKey.registration()])
        // Collected every 10 ms; ten seconds of full load fit.
        configuration.keptDeliveries = 1 << 18
        configuration.keptBodyBytes = 1 << 29
        configuration.rememberedIDs = 1 << 20
        apns = try APNsSimulator(configuration, authority: authority, eventLoopGroup: group)
        apnsURL = "https://127.0.0.1:\(try await apns.start())"
        let account = try ServiceAccount()
        var other = FCMSimulatorConfiguration(accounts: [account.registration])
        other.keptDeliveries = 1 << 18
        other.keptBodyBytes = 1 << 29
        other.knobs.projectMinuteLimit = nil
        other.knobs.deviceMinuteLimit = nil
        other.knobs.deviceHourLimit = nil
        google = try FCMSimulator(other, authority: authority, eventLoopGroup: group)
        let port = try await google.start()
        // The host names that the simulator's assertions may be made for are its own two.
        fcm = RelayPlan.FCM(
            url: "https://localhost:\(port)", tokenURL: "https://localhost:\(port)/token",
            serviceAccount: account.json(tokenURI: "https://localhost:\(port)/token"))
        project = account.project
    }

    private let project: String

    func stop() async {
        await apns.stop()
        await google.stop()
    }

    func register(_ device: LoadDevice, bundle: String) {
        if device.kind == .apns {
            apns.register(device.token, as: APNsDevice(topics: [bundle]))
        } else {
            google.register(device.token, as: FCMDevice(project: project))
        }
    }

    /// From now on the device has used up its own quota, whatever is sent to it.
    func exhaust(_ device: LoadDevice) {
        let (status, body) =
            device.kind == .apns
            ? (429, #"{"reason":"TooManyRequests"}"#)
            : (429, String(decoding: FCMSimulator.deviceQuotaBody, as: UTF8.self))
        let stray = StrayAnswer(status: status, body: body, on: .share(1), address: device.token)
        if device.kind == .apns {
            apns.turn { $0.strays.append(stray) }
        } else {
            google.turn { $0.strays.append(stray) }
        }
    }

    /// Turns the service to one of its moods: well, failing now and then, slow, or failing altogether. What
    /// it fails at stays owed, so that there is something to lose.
    func misbehave(_ random: TrialRandom) {
        let mood = random.below(4)
        turn(
            errorShare: [0, 0.3, 0, 1][mood], delay: mood == 2 ? .exponential(mean: .milliseconds(40)) : .none
        )
    }

    func answerWell() { turn(errorShare: 0, delay: .none) }

    /// Fails at everything that is sent, with an answer that asks for another try.
    func fail() { turn(errorShare: 1, delay: .none) }

    /// Takes requests and never answers one, nor accepts it.
    func stall() {
        turn(
            errorShare: 0, delay: .none,
            faults: [RequestFault(.neverAnswered, on: .share(1), isJudged: false)])
    }

    /// From now on Google has room for some ten requests a second, as of a project whose share is used up:
    /// one at a time on each of a lane's eight connections. `false`: as before.
    func crawl(_ isSlow: Bool) {
        google.turnConnections { knobs in
            (knobs.streams, knobs.answerDelay) = isSlow ? (1, .fixed(.milliseconds(800))) : (1_000, .none)
        }
    }

    private func turn(errorShare: Double, delay: AnswerDelay, faults: [RequestFault] = []) {
        apns.turn { $0.errorShare = errorShare }
        google.turn { $0.errorShare = errorShare }
        apns.turnConnections { ($0.answerDelay, $0.faults) = (delay, faults) }
        google.turnConnections { ($0.answerDelay, $0.faults) = (delay, faults) }
    }

    /// How far somebody has read.
    struct Place: Sendable {
        fileprivate var apns = 0
        fileprivate var fcm = 0
    }

    /// What has arrived behind that place, which moves on.
    func deliveries(behind place: inout Place) -> (apple: [Delivery], google: [Delivery]) {
        let apple = apns.deliveries(after: place.apns, limit: 4096)
        let google = google.deliveries(after: place.fcm, limit: 4096)
        place.apns = apple.last?.number ?? place.apns
        place.fcm = google.last?.number ?? place.fcm
        return (apple, google)
    }

    var openConnections: Int { apns.openConnections + google.openConnections }

    /// A third of the sends fail once.
    func failSometimes() { turn(errorShare: 0.3, delay: .none) }

    /// A relay that sends to it; Google's part is for whoever wants it (``fcm``).
    func makePlan(executable: String, directory: String) -> RelayPlan {
        var plan = RelayPlan(
            executable: executable, directory: directory, apnsURL: apnsURL, authority: authorityPEM,
            apnsKey: apnsKey.privateKeyPEM)
        (plan.team, plan.keyID) = (apnsKey.team, apnsKey.keyID)
        return plan
    }
}
