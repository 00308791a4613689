import Foundation
import NextcloudPush

/// A phone and a Nextcloud server in one process: the phone registers, the server seals a message, the phone
/// opens it.
@main
struct NextcloudApp {
    static let capabilities = Secret(
        #"{"ocs":{"data":{"capabilities":{"notifications":{"push":["devices","object-data","delete"]}}}}}"#
            .utf8)

    static func main() throws {
        let now = UnixTime(seconds: Int64(Date().timeIntervalSince1970))
        let account = NextcloudAccount(
            serverURL: "https://cloud.example.org", userID: "alice", loginName: "alice",
            appPassword: Secret("aaaaa-bbbbb-ccccc".utf8))
        let key = try RSAPrivateKey.generate()
        var phone = AccountPush(account: account, key: key)
        let (alert, voip) = (String(repeating: "B5", count: 32), String(repeating: "C6", count: 32))
        guard
            let atServer = try phone.register(
                alertToken: alert, voipToken: voip, capabilities: capabilities, now: now)
        else { throw Failure("a new phone has something to tell its server") }

        let user = NextcloudUser(cloudID: account.cloudID, key: try RSAPrivateKey.generate())
        let origin = NextcloudOrigin()
        let fields = try form(atServer)
        let verdict = try origin.register(
            PushRegistration(
                pushTokenHash: fields["pushTokenHash"], devicePublicKey: fields["devicePublicKey"],
                proxyServer: fields["proxyServer"]),
            by: NextcloudSession(user: user, tokenID: 41), userAgent: AccountPush.app.userAgent, rows: [])
        guard let row = verdict.row else { throw Failure("the server takes the phone in") }
        print("the server answers \(verdict.answer.status); the phone is of the group \(row.group)")

        let words = NextcloudAnswer(
            status: verdict.answer.httpStatus(.v2), body: verdict.answer.body(.v2, .json))
        guard let atRelay = try phone.answered(words, now: now) else {
            throw Failure("the relay is told the token")
        }
        print("the phone goes on to \(atRelay.url)")
        guard try phone.answered(NextcloudAnswer(status: 200), now: now) == nil else {
            throw Failure("everything is registered")
        }

        let audience = PushConditions(appPasswords: [41: AppPasswordState(lastUsedAt: now)])
        let message = NextcloudNotification(
            id: 1_337, app: "spreed", subject: "Iago: see you at nine", objectType: "chat",
            objectID: "t0k3n")
        let sealing = try origin.notify(
            message, to: audience.audience(for: message, of: [row], now: now), of: user)
        var queue = ProxyQueue(origin)
        queue.add(sealing.entries, now: now)
        guard let call = queue.next(now: now).first, let push = try payload(of: call.request) else {
            throw Failure("there is one push")
        }
        print("the server sends \(call.request.body.count) bytes to \(call.request.url)")

        // A phone that was restarted has what it kept.
        guard let kept = phone.device.registration?.encoded() else { throw Failure("it is registered") }
        let restarted = AccountPush(
            account: account, key: try RSAPrivateKey(pem: phone.device.key.pem),
            registration: try DeviceRegistration(decoding: kept))
        let text = try restarted.text(subject: push.subject, signature: push.signature)
        guard text == message.subject else { throw Failure("it says what was sent") }
        print("the phone opens it: \(text ?? "")")
        try expectForeign(push, account)
    }

    /// A phone that has registered nowhere believes nobody.
    private static func expectForeign(
        _ push: (subject: String, signature: String), _ account: NextcloudAccount
    ) throws {
        let stranger = AccountPush(account: account, key: try RSAPrivateKey.generate())
        do {
            _ = try stranger.text(subject: push.subject, signature: push.signature)
        } catch let error as NextcloudError {
            return print("another phone does not: \(error.sentence)")
        }
        throw Failure("another phone opened it")
    }

    private static func form(_ call: NextcloudCall) throws -> [String: String] {
        var parts = URLComponents()
        // Only a form has blanks as plus signs.
        parts.percentEncodedQuery = call.body.reveal { String(decoding: $0, as: UTF8.self) }
            .replacingOccurrences(of: "+", with: "%20")
        return Dictionary(
            (parts.queryItems ?? []).map { ($0.name, $0.value ?? "") }, uniquingKeysWith: { $1 })
    }

    private static func payload(of call: NextcloudCall) throws -> (subject: String, signature: String)? {
        let entry = try form(call)["notifications[0]"] ?? ""
        let json = try JSONSerialization.jsonObject(with: Data(entry.utf8)) as? [String: Any]
        guard let subject = json?["subject"] as? String, let signature = json?["signature"] as? String else {
            return nil
        }
        return (subject, signature)
    }
}

/// What should have been so and was not; ends the program with a status other than 0.
struct Failure: Error {
    let text: String
    init(_ text: String) { self.text = text }
}
