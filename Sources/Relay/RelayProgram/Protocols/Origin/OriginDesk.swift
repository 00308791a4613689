import AdminIngress
import HTTPIngress
import OriginServer
import PushModel
import WireFormats
import ZulipPush

/// The operator's calls about an origin's realms, users and notifications at the admin listener, below
/// `/origin/`. A key is told once, to whoever asked for it.
struct OriginDesk: Sendable {
    enum Path: String {
        case signUp = "/origin/sign-up"
        case realms = "/origin/realms"
        case addRealm = "/origin/realms/add"
        case setRealm = "/origin/realms/set"
        case removeRealm = "/origin/realms/remove"
        case users = "/origin/users"
        case addUser = "/origin/users/add"
        case renewKey = "/origin/users/key"
        case removeUser = "/origin/users/remove"
        case notify = "/origin/notify"
        case notification = "/origin/notification"
        case withdraw = "/origin/withdraw"
        case test = "/origin/test"
        case stale = "/origin/stale"
        case registrations = "/origin/registrations"
        case drop = "/origin/registrations/drop"
        case retry = "/origin/registrations/retry"
        case status = "/origin/status"
    }

    private let instances: DeskInstances

    init(_ instances: DeskInstances) { self.instances = instances }

    private func house() throws(DeskRefusal) -> OriginHouse {
        try instances.part(nil) { ($0 as? OriginInstance)?.house }.part
    }

    var calls: [AdminCall] {
        [
            call(.signUp) { house, inbound throws(DeskRefusal) in try await signUp(house, inbound) },
            call(.realms, takesBody: false) { house, _ throws(DeskRefusal) in realms(house) },
            call(.addRealm) { house, inbound throws(DeskRefusal) in try await addRealm(house, inbound) },
            call(.setRealm) { house, inbound throws(DeskRefusal) in try await setRealm(house, inbound) },
            call(.removeRealm) { house, inbound throws(DeskRefusal) in
                try await removeRealm(house, inbound)
            },
            call(.users, takesBody: false) { house, inbound throws(DeskRefusal) in
                try await users(house, inbound)
            },
            call(.addUser) { house, inbound throws(DeskRefusal) in try await addUser(house, inbound) },
            call(.renewKey) { house, inbound throws(DeskRefusal) in try await renewKey(house, inbound) },
            call(.removeUser) { house, inbound throws(DeskRefusal) in
                try await removeUser(house, inbound)
            },
            call(.notify) { house, inbound throws(DeskRefusal) in try await notify(house, inbound) },
            call(.withdraw) { house, inbound throws(DeskRefusal) in try await withdraw(house, inbound) },
            call(.test) { house, inbound throws(DeskRefusal) in try await test(house, inbound) },
            call(.stale) { house, _ throws(DeskRefusal) in try await askForStale(house) },
            call(.registrations) { house, inbound throws(DeskRefusal) in
                try await registrations(house, inbound)
            },
            call(.drop) { house, inbound throws(DeskRefusal) in try await drop(house, inbound) },
            call(.retry) { house, _ throws(DeskRefusal) in
                JSONWriter.object { $0.member("owed", house.retryRegistrations()) }
            },
            call(.status, takesBody: false) { house, _ throws(DeskRefusal) in try await status(house) },
            call(.notification, takesBody: false) { house, inbound throws(DeskRefusal) in
                try await notification(house, inbound)
            }
        ]
    }

    private func call(
        _ path: Path, takesBody: Bool = true,
        _ answer: @escaping @Sendable (OriginHouse, HTTPInbound) async throws(DeskRefusal) -> [UInt8]
    ) -> AdminCall {
        .desk(path.rawValue, takesBody: takesBody) { inbound throws(DeskRefusal) in
            try await answer(try house(), inbound)
        }
    }

    // MARK: Sign-up

    private func signUp(_ house: OriginHouse, _ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let body = try inbound.object()
        let (rotates, transfers) = (body["rotate"]?.bool ?? false, body["transfer"]?.bool ?? false)
        guard !(rotates && transfers) else { throw .status(400, "A transfer brings a new key by itself.") }
        let told: OriginUpkeep.Told
        do throws(CommandFailure) {
            told = transfers ? try await house.transfer() : try await house.signUp(rotates: rotates)
        } catch {
            throw .told(409, error.lines.joined(separator: " "))
        }
        guard case .told = told else { throw Self.refusal(told) }
        let realms = await house.upkeep.tellRealms()
        return JSONWriter.object { json in
            json.member("host", house.host)
            json.member("realms", realms.word)
        }
    }

    private static func refusal(_ told: OriginUpkeep.Told) -> DeskRefusal {
        switch told {
        case .told: .status(500, "")
        case .notSignedUp: .status(409, "This server has not signed up: sealbell origin sign-up.")
        case .noRealm: .status(409, "There is no realm yet: sealbell origin realm add.")
        case .unreachable: .status(502, "The relay does not answer. Look at origin.relay.")
        case .refused(_, "HOSTNAME_ALREADY_IN_USE_BOUNCER_ERROR"):
            .told(
                502,
                "The relay knows this host under another id. "
                    + "If its key is lost: sealbell origin sign-up --transfer.")
        case .refused(_, "REALM_DEACTIVATED"):
            .told(
                502,
                "The relay has deactivated this server, or its operator has suspended it: ask them.")
        case .refused(let status, let code): .told(502, "The relay refuses with \(status) \(code.asWord).")
        }
    }

    // MARK: Realms

    private func realms(_ house: OriginHouse) -> [UInt8] {
        JSONWriter.object { json in
            json.beginArray("realms")
            for realm in house.people.realms { Self.write(realm, &json) }
            json.endArray()
        }
    }

    private static func write(_ realm: OriginRealm, _ json: inout JSONWriter) {
        json.beginObject()
        json.member("name", realm.name)
        json.member("uuid", realm.uuid)
        json.member("url", realm.url)
        json.member("require_e2ee", realm.requiresEncryption)
        json.endObject()
    }

    private func addRealm(_ house: OriginHouse, _ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let body = try inbound.object()
        let name = try Self.text(body, "name")
        let given = body["url"]?.string
        guard let url = given.map({ OriginURL.read($0) }) ?? house.settings.url else {
            throw .status(400, "A realm's url is an https address without a path.")
        }
        let realm = try await Self.done { () throws(OriginError) in
            try await house.people.addRealm(name, url: url)
        }
        let told = await house.upkeep.tellRealms()
        return JSONWriter.object { json in
            json.member("name", realm.name)
            json.member("uuid", realm.uuid)
            json.member("relay", told.word)
        }
    }

    private func setRealm(_ house: OriginHouse, _ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let body = try inbound.object()
        let name = try Self.text(body, "name")
        guard let requires = body["require_e2ee"]?.bool else {
            throw .status(400, "Say require_e2ee: true or false.")
        }
        let realm = try await Self.done { () throws(OriginError) in
            try await house.require(requires, of: name)
        }
        var json = JSONWriter(reserving: 512)
        Self.write(realm, &json)
        return json.bytes
    }

    private func removeRealm(
        _ house: OriginHouse, _ inbound: HTTPInbound
    ) async throws(DeskRefusal) -> [UInt8] {
        let name = try Self.text(try inbound.object(), "name")
        try await Self.done { () throws(OriginError) in try await house.people.removeRealm(name) }
        let told = await house.upkeep.tellRealms()
        return JSONWriter.object { json in
            json.member("name", name)
            json.member("relay", told.word)
        }
    }

    // MARK: Users

    private func users(_ house: OriginHouse, _ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let after = inbound.members["after"].flatMap { UInt64($0) } ?? 0
        let page = try await Self.done { () throws(OriginError) in
            try await house.people.users(after: after)
        }
        return JSONWriter.object { json in
            json.beginArray("users")
            for user in page.users {
                json.beginObject()
                json.member("name", user.name)
                json.member("realm", house.people.realm(user.realm)?.name ?? "")
                json.endObject()
            }
            json.endArray()
            if let next = page.next { json.member("next", String(next)) }
        }
    }

    private func addUser(_ house: OriginHouse, _ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let body = try inbound.object()
        let name = try Self.text(body, "name")
        let made = try await Self.done { () throws(OriginError) in
            try await house.people.addUser(
                name, realm: body["realm"]?.string, hasAppPassword: body["app_password"]?.bool ?? false)
        }
        return JSONWriter.object { json in
            json.member("name", made.user.name)
            json.member("key", made.key)
            if let password = made.appPassword { json.member("app_password", password) }
        }
    }

    private func renewKey(_ house: OriginHouse, _ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let body = try inbound.object()
        let name = try Self.text(body, "name")
        let kind: OriginUser.Credential.Kind =
            body["app_password"]?.bool ?? false ? .appPassword : .apiKey
        let key = try await Self.done { () throws(OriginError) in
            try await house.renewKey(of: name, kind, keepsPhones: body["keep_phones"]?.bool ?? false)
        }
        return JSONWriter.object { json in
            json.member("name", name)
            json.member("key", key)
        }
    }

    private func removeUser(
        _ house: OriginHouse, _ inbound: HTTPInbound
    ) async throws(DeskRefusal) -> [UInt8] {
        let name = try Self.text(try inbound.object(), "name")
        try await Self.done { () throws(OriginError) in try await house.removeUser(name) }
        return JSONWriter.object { $0.member("name", name) }
    }

    // MARK: Notifications

    private func notify(_ house: OriginHouse, _ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let body = try inbound.object()
        let name = try Self.text(body, "user")
        let text = try Self.text(body, "text")
        let sent = try await Self.done { () throws(OriginError) in
            let id = Hex.encode(house.world.randomBytes(16))
            let devices = try await house.notify(
                name, id: id, NotificationContent(text: text), beside: { _ in [] })
            return (id: id, devices: devices ?? 0)
        }
        return Self.sent(sent)
    }

    private func notification(
        _ house: OriginHouse, _ inbound: HTTPInbound
    ) async throws(DeskRefusal) -> [UInt8] {
        guard let id = inbound.members["id"] else { throw .status(400, "Say which: ?id=.") }
        let found = try await Self.done { () throws(OriginError) in
            try await house.devices(of: String(id))
        }
        guard let found else { throw .status(404, "Nobody knows this notification, or a day has passed.") }
        return NotifiedDevice.json(found, calls: house.notifier.calls(of: String(id)))
    }

    private func withdraw(
        _ house: OriginHouse, _ inbound: HTTPInbound
    ) async throws(DeskRefusal) -> [UInt8] {
        let body = try inbound.object()
        let name = try Self.text(body, "user")
        let ids = body["ids"]?.array?.compactMap(\.string) ?? []
        guard (1...200).contains(ids.count) else { throw .status(400, "Say 1 to 200 ids.") }
        return Self.sent(
            try await Self.done { () throws(OriginError) in
                let id = Hex.encode(house.world.randomBytes(16))
                return (id, try await house.withdraw(name, ids, id: id, beside: { _ in [] }) ?? 0)
            })
    }

    private func test(_ house: OriginHouse, _ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let name = try Self.text(try inbound.object(), "user")
        return Self.sent(try await Self.done { () throws(OriginError) in try await house.test(name) })
    }

    private func askForStale(_ house: OriginHouse) async throws(DeskRefusal) -> [UInt8] {
        try await Self.done { () throws(OriginError) in try await house.upkeep.askForStale() }
        return JSONWriter.object { $0.member("realms", house.people.realms.count) }
    }

    private static func sent(_ sent: (id: String, devices: Int)) -> [UInt8] {
        JSONWriter.object { json in
            json.member("id", sent.id)
            json.member("devices", sent.devices)
        }
    }

    // MARK: parts

    static func text(_ body: JSONObject, _ name: StaticString) throws(DeskRefusal) -> String {
        guard let text = body["\(name)"]?.string, !text.isEmpty else {
            throw .told(400, "The member \(name) is missing.")
        }
        return text
    }

    static func done<Made: Sendable>(
        _ work: () async throws(OriginError) -> Made
    ) async throws(DeskRefusal) -> Made {
        do throws(OriginError) { return try await work() } catch {
            let status =
                switch error.code {
                case .overloaded, .damagedRecord: 503
                case .rateLimited: 429
                case .unknownRealm, .unknownUser: 404
                case .nameTaken, .tooManyKeys, .tooManyRealms, .realmInUse: 409
                case .badName, .tooMuchContent: 400
                }
            throw .told(status, error.sentence)
        }
    }
}

extension String {
    /// A peer's code, as far as it is one: a relay may send anything.
    fileprivate var asWord: String {
        let isWord = utf8.count <= 64 && utf8.allSatisfy { (0x41...0x5A).contains($0) || $0 == 0x5F }
        return isWord ? self : ""
    }
}

extension OriginUpkeep.Told {
    /// For an operator who asked for something else.
    var word: String {
        switch self {
        case .told: "told"
        case .notSignedUp: "not signed up"
        case .noRealm: "no realm"
        case .unreachable: "unreachable"
        case .refused(let status, _): "refused \(status)"
        }
    }
}
