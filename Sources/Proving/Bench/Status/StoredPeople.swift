import AtRest
import Crypto
import Primitives
import PushModel
import SQLiteStore
import Secp256k1Keys
import Simulators
import StatusPush
import WireFormats

/// People who are registered, as a relay's store has them: of each one registration and two followed topics.
/// Everything of a person is made of a seed and a number, so that nobody has to be kept.
///
/// A topic's key is not the one that its name gives, but any: making 200,000 would take half an hour, and
/// whoever made one anew for a message could not open the message with it.
struct StoredPeople: Sendable {
    /// Changes of one commit.
    private static let peopleAtOnce = 250
    private static let accessToken = Secret("a6712c96-9eb0-4df5-bc7c-041602a28ea7".utf8)

    private let keys: StatusRecordNames
    private let bundle: String
    private let seed: [UInt8]
    private let world: World

    init(of instance: ConfiguredName, bundle: String, world: World) {
        keys = StatusRecordNames(instance)
        (self.bundle, self.world) = (bundle, world)
        seed = world.randomBytes(32)
    }

    // MARK: Rows

    /// Fills a store that is not there yet, with keys of its own.
    ///
    /// - Parameters:
    ///   - count: people, those of the first numbers.
    ///   - path: of the database.
    /// - Throws: `BenchError(.fileFault)`, `StoreError`.
    func fill(_ count: Int, path: String, keyFile: String) async throws {
        let sealKeys: AtRestKeys
        do throws(KeyFileError) { sealKeys = try KeyFile.create(keyFile, world) } catch {
            throw BenchError(.fileFault)
        }
        let owner = OwnerID(Digest16(high: world.random(), low: world.random()))
        let engine = try SQLiteStore(path: path, owner: owner, world: world)
        let store = try await SealedStore(engine: engine, keys: sealKeys, world: world)
        for start in stride(from: 0, to: count, by: Self.peopleAtOnce) {
            let changes = (start..<min(count, start + Self.peopleAtOnce)).flatMap { rows(of: $0) }
            guard try await store.apply(changes) == .committed else { throw BenchError(.setUpRefused) }
        }
        try engine.close()
    }

    /// What the relay keeps of one person.
    func rows(of number: Int) -> [Change] {
        let (person, now) = (person(number), world.now())
        var registration = PushNotificationRegistration()
        registration.tokenType = .apn
        registration.deviceToken = Secret(bytes(number, "token", SHA256.self)).hexDigits
        registration.apnTopic = Secret(bundle.utf8)
        registration.installationID = Secret("installation-\(number)".utf8)
        registration.accessToken = Self.accessToken
        // As long as one is; the relay looks at it when somebody registers.
        registration.grant = Secret(bytes(number, "grant", SHA512.self) + [0])
        registration.enabled = true
        registration.version = 1
        let record = Record(
            key: keys.registration(of: person, installation: registration.installationID),
            owner: keys.owner(person),
            address: keys.address(of: registration.deviceToken, bundle: bundle), version: 1,
            touchedAt: now, body: StatusRow(person: person, registration).body)
        let topics = [WakuTopic.query(of: person), WakuTopic.prefixedQuery(of: person)]
        return [.put(record, if: .any)]
            + topics.map { .put(FollowedTopic.record($0, key: key(of: number), keys, now: now), if: .any) }
    }

    // MARK: Messages

    /// A stranger asks for the person's tokens, as deployed senders ask.
    ///
    /// - Parameter time: Unix nanoseconds.
    func query(about number: Int, at time: Int64) -> SimulatedWakuMessage {
        let (sender, person) = (Secp256k1KeyPair.generate(world), person(number))
        let text = PushNotificationQuery(publicKeys: [person]).encoded()
        let payload = WakuPayload.sealSymmetric(
            MetadataMessage.wrap(text, .query, by: sender), key: key(of: number), signer: sender, world)
        return SimulatedWakuMessage(
            payload: payload.reveal { Array($0) }, contentTopic: WakuTopic.query(of: person).contentTopic,
            timestamp: time, isEphemeral: true)
    }

    // MARK: Made of a number

    private func person(_ number: Int) -> Secret { Secret(bytes(number, "person", SHA512.self)) }

    private func key(of number: Int) -> Secret { Secret(bytes(number, "key", SHA256.self)) }

    private func bytes<Hash: HashFunction>(_ number: Int, _ word: String, _: Hash.Type) -> [UInt8] {
        Array(Hash.hash(data: seed + "\(word) \(number)".utf8))
    }
}
