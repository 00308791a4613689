import AppSupport
import Foundation
import MarmotPush
import NextcloudPush
import SessionPush
import StatusPush
import ZulipPush

/// A phone of each protocol with much on it.
enum Scene: String {
    case zulip, nextcloud, session, status, marmot

    /// For whoever reads what is printed.
    var what: String {
        switch self {
        case .zulip, .nextcloud: "20 logins"
        case .session: "200 accounts, 512 messages seen"
        case .status: "1,500 contacts"
        case .marmot: "a group of 200 leaves"
        }
    }

    /// What the phone has kept, and a push for it.
    ///
    /// - Parameter folder: with what ZulipApp, NextcloudApp and SessionApp have left.
    func fill(from folder: URL) throws -> LeftPhone {
        switch self {
        case .zulip, .nextcloud: try LeftPhone(rawValue, in: folder)
        case .session: try SessionScene.fill(LeftPhone(rawValue, in: folder))
        case .status: try StatusScene().fill()
        case .marmot: try MarmotScene.fill()
        }
    }

    /// What an extension does: makes the devices, and opens. All of them are there to the end.
    func opening(_ left: LeftPhone) throws -> () throws -> Void {
        switch self {
        case .zulip: return { try Self.zulip(left) }
        case .nextcloud: return { try Self.nextcloud(left) }
        case .session: return { try SessionScene.open(left) }
        case .status:
            let scene = try StatusScene()
            return { try scene.open(left) }
        case .marmot: return { try MarmotScene.open(left) }
        }
    }

    /// Twenty times the one that ZulipApp has left: each is as large as any.
    private static func zulip(_ left: LeftPhone) throws {
        let login = try ZulipLogin(
            realmURL: "https://chat.example.org", userID: 7, email: "ada@example.org",
            apiKey: Secret("api-key".utf8),
            relayKey: RelayKey(text: "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="),
            bundleID: "org.acme.chat")
        let devices = try (0..<20).map { _ in try ZulipDevice(login, keeping: left.kept) }
        let opened = try ZulipDevice.open(Delivered(json: left.push), among: devices, at: now()).opened
        guard case .show = opened, devices.count == 20 else { throw Failure("Zulip's push is a message") }
    }

    /// Twenty times the one that NextcloudApp has left.
    private static func nextcloud(_ left: LeftPhone) throws {
        let login = NextcloudLogin(
            serverURL: "https://cloud.example.org", userID: "alice", loginName: "alice",
            appPassword: Secret("aaaaa-bbbbb-ccccc".utf8),
            proxyServer: "https://push.example.org/acme-talk",
            userAgent: "Mozilla/5.0 (iOS) Nextcloud-Talk v20.1.0", voip: .strict)
        let devices = try (0..<20).map { _ in try NextcloudDevice(login, keeping: left.kept) }
        let opened = try NextcloudDevice.open(Delivered(json: left.push), among: devices, at: now()).opened
        guard case .show = opened, devices.count == 20 else { throw Failure("Nextcloud's push is an alert") }
    }
}
