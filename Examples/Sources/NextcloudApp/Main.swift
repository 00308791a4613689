import AppSupport
import Foundation
import NextcloudPush
import Synchronization

/// A phone and a Nextcloud server in one process: the phone registers, the server seals a message, the phone
/// opens it.
@main
struct NextcloudApp {
    static func main() async throws {
        let cloud = try Cloud()
        let keychain = Keychain()
        let password = Secret("aaaaa-bbbbb-ccccc".utf8)
        let login = AccountPush.login(userID: "alice", loginName: "alice", appPassword: password)
        func start() throws -> AccountPush {
            try AccountPush(
                userID: "alice", loginName: "alice", appPassword: password, kept: keychain.load(),
                save: keychain.save, send: { cloud.answer($0) })
        }
        let (alerts, calls) = ([UInt8](repeating: 0xB5, count: 32), [UInt8](repeating: 0xC6, count: 32))
        let push = try start()
        try await push.use(alerts: alerts, calls: calls)
        guard await push.phone.device.status(at: now()).state == .active else {
            throw Failure("everything is registered")
        }
        print("the phone asked \(cloud.asked)")

        // A phone that was restarted has what it kept, and nothing to tell.
        let restarted = try start()
        try await restarted.use(alerts: alerts, calls: calls)
        guard cloud.asked.count == 3, let kept = keychain.load() else { throw Failure("nothing has changed") }

        let userInfo = try cloud.push(subject: "Iago: see you at nine")
        let text = try AccountPush.text(userInfo, login, kept: kept)
        guard text == "Iago: see you at nine" else { throw Failure("it says what was sent") }
        print("the phone opens it: \(text ?? "")")
        try expectForeign(userInfo, login)
        let delivered = Secret(try JSONSerialization.data(withJSONObject: userInfo))
        try LeftPhone(kept: kept, push: delivered).writeIfWanted("nextcloud")

        guard try await restarted.leave() else { throw Failure("nothing is left anywhere") }
        print("the phone has left; the last words were \(cloud.asked.suffix(2))")
    }

    /// A phone that has registered nowhere believes nobody.
    private static func expectForeign(_ userInfo: [AnyHashable: Any], _ login: NextcloudLogin) throws {
        let stranger = try NextcloudDevice(login)
        do throws(DeviceError) {
            _ = try stranger.open(Delivered(userInfo: userInfo), at: now())
        } catch {
            return print("another phone does not: \(error.sentence)")
        }
        throw Failure("another phone opened it")
    }
}

/// A Nextcloud server with one user, and a relay that agrees with everything.
final class Cloud: Sendable {
    private static let capabilities =
        #"{"ocs":{"data":{"capabilities":{"notifications":{"push":["devices","object-data","delete"]}}}}}"#
    private let user: NextcloudUser
    private let origin = NextcloudOrigin()
    private let rows = Mutex<[RegisteredDevice]>([])
    private let calls = Mutex<[String]>([])

    init() throws { user = NextcloudUser(cloudID: "alice@cloud.example.org", key: try .generate()) }

    /// What was asked, without the words.
    var asked: [String] { calls.withLock(\.self) }

    func answer(_ call: Call) -> CallAnswer {
        guard let http = call.http else { return .none }
        calls.withLock { $0.append("\(http.method) \(URL(string: http.url)?.host ?? "")") }
        switch (http.method, http.url.hasPrefix("https://cloud.example.org/")) {
        case ("GET", true): return .http(status: 200, body: Secret(Self.capabilities.utf8))
        case ("POST", true): return registered(form(http.body))
        default: return .http(status: 200, body: Secret([]))
        }
    }

    private func registered(_ fields: [String: String]) -> CallAnswer {
        let asked = PushRegistration(
            pushTokenHash: fields["pushTokenHash"], devicePublicKey: fields["devicePublicKey"],
            proxyServer: fields["proxyServer"])
        guard
            let verdict = try? origin.register(
                asked, by: NextcloudSession(user: user, tokenID: 41),
                userAgent: "Mozilla/5.0 (iOS) Nextcloud-Talk v20.1.0", rows: [])
        else { return .none }
        rows.withLock { $0 = verdict.row.map { [$0] } ?? [] }
        return .http(status: verdict.answer.httpStatus(.v2), body: verdict.answer.body(.v2, .json))
    }

    /// A message to all of the user's phones, as APNs hands it to the one that there is.
    func push(subject: String) throws -> [AnyHashable: Any] {
        let message = NextcloudNotification(
            id: 1_337, app: "spreed", subject: subject, objectType: "chat", objectID: "t0k3n")
        let passwords = PushConditions(appPasswords: [41: AppPasswordState(lastUsedAt: now())])
        let audience = passwords.audience(for: message, of: rows.withLock(\.self), now: now())
        var queue = ProxyQueue(origin)
        queue.add(try origin.notify(message, to: audience, of: user).entries, now: now())
        guard let call = queue.next(now: now()).first else { throw Failure("there is one push") }
        print("the server sends \(call.request.body.count) bytes to \(call.request.url)")
        let entry = form(call.request.body)["notifications[0]"] ?? ""
        let json = try JSONSerialization.jsonObject(with: Data(entry.utf8)) as? [String: Any]
        return [
            "aps": [String: Any](), "subject": json?["subject"] ?? "", "signature": json?["signature"] ?? ""
        ]
    }

    private func form(_ body: Secret) -> [String: String] {
        var parts = URLComponents()
        // Only a form has blanks as plus signs.
        parts.percentEncodedQuery = body.reveal { String(decoding: $0, as: UTF8.self) }
            .replacingOccurrences(of: "+", with: "%20")
        return Dictionary(
            (parts.queryItems ?? []).map { ($0.name, $0.value ?? "") }, uniquingKeysWith: { $1 })
    }
}

/// What should have been so and was not; ends the program with a status other than 0.
struct Failure: Error {
    let text: String
    init(_ text: String) { self.text = text }
}
