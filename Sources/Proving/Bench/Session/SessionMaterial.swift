import PushModel
import SessionPush

/// Phones, and what they subscribe with, all of it as the device's own code makes it.
enum SessionMaterial {
    static let bundle = "org.getsession.bench"

    /// One phone with one account.
    struct Phone {
        let service: SessionService
        let token: Secret
        let encryptionKey: Secret
        let form: SubscribeForm

        init(_ key: SessionAccountKey, _ service: SessionService, world: World) throws {
            let made = LoadDevice.make(service == .firebase ? .fcm : .apns, world)
            let phone = try SubscribingPhone(made, watching: WatchedAccount(key), world)
            (self.service, token) = (service, Secret(made.token.utf8))
            encryptionKey = phone.device.routine.encKey
            guard let form = try SessionMaterial.form(phone.subscription.body) else {
                throw BenchError(.setUpRefused)
            }
            self.form = form
        }
    }

    static func key(_ world: World) throws -> SessionAccountKey {
        try SessionAccountKey(seed: Secret(world.randomBytes(SessionLimits.keyBytes)))
    }

    static func app() throws -> (name: ConfiguredName, apps: SessionApps) {
        guard let name = ConfiguredName("acme-session") else { throw BenchError(.badPlan) }
        let app = SessionApp(name: name, bundle: bundle)
        return (name, SessionApps([.apns: app, .firebase: app]))
    }

    /// What the relay reads of a call with one element.
    private static func form(_ body: Secret) throws -> SubscribeForm? {
        let read = try body.reveal { (body) throws(SessionError) in
            try SessionCallBody(.subscribe, by: .plain, body)
        }
        guard case .success(.subscribe(let form, _))? = read.elements.first else { return nil }
        return form
    }
}

/// Subscriptions as they are stored, in one piece of memory.
struct StoredSubscriptions: Sendable {
    private let bytes: [UInt8]
    private let stride: Int
    /// Where the account stands in each.
    private let place: Int

    /// - Parameter count: accounts, each with one phone, whose signatures storage servers take.
    init(_ count: Int, world: World) throws {
        let app = try SessionMaterial.app().name
        var bytes: [UInt8] = []
        var (stride, place) = (0, 0)
        for _ in 0..<count {
            let phone = try SessionMaterial.Phone(try SessionMaterial.key(world), .apns, world: world)
            let body = SessionSubscription(phone.form, app: app).body
            if stride == 0 {
                stride = body.count
                place = try Self.find(phone.form.claim.account.bytes, in: body)
                bytes.reserveCapacity(count * stride)
            }
            guard body.count == stride else { throw BenchError(.setUpRefused) }
            body.reveal { bytes.append(contentsOf: $0) }
        }
        (self.bytes, self.stride, self.place) = (bytes, stride, place)
    }

    private static func find(_ account: Secret, in body: Secret) throws(BenchError) -> Int {
        let place = body.reveal { body in
            account.reveal { account in
                (0...max(0, body.count - account.count)).first { at in
                    UnsafeRawBufferPointer(rebasing: body[at...]).starts(with: account)
                }
            }
        }
        guard let place else { throw BenchError(.setUpRefused) }
        return place
    }

    var count: Int { stride == 0 ? 0 : bytes.count / stride }

    /// What is stored of one.
    func body(_ number: Int) -> Secret { body(number) { _ in } }

    /// The first one again, of an account that nobody has: as many as are wanted, and none of them is kept.
    ///
    /// Its signature is not the account's, so it can be read, and shown to nobody.
    func strangersBody(_ number: Int) -> Secret {
        body(0) { room in
            var word = UInt64(number)
            for at in 0..<4 {
                // SplitMix64: neighbours stand far apart in the ring.
                word &+= 0x9E37_79B9_7F4A_7C15
                var mixed = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
                mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
                room.storeBytes(
                    of: mixed ^ (mixed >> 31), toByteOffset: place + 1 + 8 * at, as: UInt64.self)
            }
        }
    }

    private func body(_ number: Int, _ change: (UnsafeMutableRawBufferPointer) -> Void) -> Secret {
        bytes.withUnsafeBytes { bytes in
            Secret(count: stride) { out in
                let start = number * stride
                out.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[start..<start + stride]))
                change(out)
            }
        }
    }
}
