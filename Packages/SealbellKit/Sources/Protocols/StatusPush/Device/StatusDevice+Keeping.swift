import Primitives
public import PushModel
import SealbellKit
import WireFormats

extension StatusDevice {
    private static let title: StaticString = "status-device"

    /// What to keep over a restart, at most ``StatusLimits/deviceRowBytes``: the access token, digests of
    /// contacts and of messages that were stored, how each server stands. No key and no device token.
    public var kept: Secret {
        var installation = installation
        // Not published for certain: the next run does it.
        installation.advertises = isAdvertising
        let head = [
            Self.mark(of: installation), Secret(cell: state.rawValue), Secret(cell: since)
        ]
        return KeptForm.write(Self.title, [head, inbox.row] + installation.rows)
    }

    /// - Returns: at least four rows: head, messages, and those of the installation.
    static func rows(_ kept: Secret) throws(StatusError) -> [[Secret]] {
        do {
            let rows = try KeptForm.read(title, kept, atMost: StatusLimits.deviceRowBytes)
            guard rows.count >= 4 else { throw StatusError(.malformedRow) }
            return rows
        } catch { throw StatusError(.malformedRow) }
    }

    /// - Returns: `nil` for a row that ``kept`` has not written for this account and installation.
    static func head(
        _ row: [Secret], _ installation: StatusInstallation, _ setup: StatusSetup
    ) -> (DeviceStatus.State, UnixTime?)? {
        guard row.count == 3, row[0] == mark(of: installation),
            let state = DeviceStatus.State(rawValue: row[1].word), let since = row[2].moment,
            setup.installationID.map({ $0 == installation.installationID }) ?? true
        else { return nil }
        return (state, since)
    }

    /// Which account it is, for whoever has its key.
    private static func mark(of installation: StatusInstallation) -> Secret {
        Secret(cell: Hex.encode(installation.digest(installation.key.point).bytes))
    }
}
