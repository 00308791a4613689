import AppSupport
import Foundation
import ZulipPush

/// A phone and a Zulip server in one process: the phone registers, the server seals a message, the phone
/// opens it, after a restart too; then it logs out.
@main
struct ZulipApp {
    static func main() async throws {
        let server = Server()
        let keychain = Keychain()
        let login = try AccountNotifications.login(
            realmURL: Server.realmURL, userID: 7, email: "ada@example.org", apiKey: Secret("api-key".utf8))
        let account = try AccountNotifications(
            login, kept: nil, save: keychain.save, send: { await server.answer($0) })
        try await account.use(deviceToken: [UInt8](repeating: 0xB5, count: 32))
        for call in await server.heard { print("the phone calls \(call)") }
        let status = await account.phone.device.status(at: now())
        print("the account is \(status.state.rawValue)")
        guard status.state == .active else { throw Failure("the phone is registered") }

        let sealed = try await server.seal("see you at nine")
        guard let push = try JSONSerialization.jsonObject(with: sealed) as? [AnyHashable: Any] else {
            throw Failure("Apple delivers an object")
        }
        guard let kept = keychain.load() else { throw Failure("something was saved") }
        let text = try AccountNotifications.text(userInfo: push, login: login, kept: kept)
        print("the extension opens it: \(text ?? "nothing")")
        guard text == "Iago: see you at nine" else { throw Failure("it says what was sent") }
        try expectForeign(push, kept)
        try LeftPhone(kept: kept, push: Secret(sealed)).writeIfWanted("zulip")

        // The app ends, and starts again with what it saved: the same registration.
        let before = await server.heard.count
        let again = try AccountNotifications(
            login, kept: kept, save: keychain.save, send: { await server.answer($0) })
        try await again.use(deviceToken: [UInt8](repeating: 0xB5, count: 32))
        let calls = await server.heard.dropFirst(before)
        guard !calls.contains(where: { $0.contains("mobile_push") }) else {
            throw Failure("nothing is told twice")
        }
        print("restarted, it asks \(calls.count) times and tells nothing")

        try await again.use(deviceToken: nil)
        guard await server.told.isEmpty, await again.phone.device.isGone else {
            throw Failure("the server has forgotten the phone")
        }
        print("logged out, the server has forgotten it")
    }

    /// Another account's phone must not open it.
    private static func expectForeign(_ push: [AnyHashable: Any], _ kept: Secret) throws {
        let stranger = try AccountNotifications.login(
            realmURL: Server.realmURL, userID: 9, email: "bob@example.org", apiKey: Secret("other".utf8))
        do {
            _ = try ZulipDevice(stranger).open(Delivered(userInfo: push), at: now())
        } catch { return print("another phone does not: \(error.sentence)") }
        throw Failure("another account's phone opened it")
    }
}

/// What should have been so and was not; ends the program with a status other than 0.
struct Failure: Error {
    let text: String
    init(_ text: String) { self.text = text }
}
