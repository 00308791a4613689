public import PushModel
import RSAKeys
import SealbellKit
import WireFormats

extension NextcloudDevice {
    private static let title: StaticString = "sealbell nextcloud device"
    private static let (registered, left) = ("registration", "leaving")

    /// The device's key, its registration, and how far it has come: some 4 KiB, at most 16 KiB. The app
    /// password is in it only between a logout and the server's answer.
    public var kept: Secret {
        let key = routine.key.pem
        var rows = [
            [
                key, Secret(cell: login.cloudID), Secret(cell: isAsked),
                Secret(cell: String(routine.failures)), Secret(cell: notBefore), Secret(cell: changedAt),
                Secret(cell: trouble?.rawValue ?? ""), login.mark(by: key)
            ]
        ]
        if let row = routine.registration?.cells { rows.append([Secret(cell: Self.registered)] + row) }
        if let row = leaving?.cells { rows.append([Secret(cell: Self.left)] + row) }
        return KeptForm.write(Self.title, rows)
    }

    init(_ login: NextcloudLogin, keeping kept: Secret) throws(DeviceError) {
        var rows = try KeptForm.read(Self.title, kept, atMost: NextcloudLimits.keptDeviceBytes)[...]
        guard let head = rows.popFirst(), head.count == 7 || head.count == 8, let isAsked = head[2].flag,
            let failures = NextcloudBackoff.failures(head[3].word), let notBefore = head[4].moment,
            let changedAt = head[5].moment
        else { throw DeviceError(.malformedKept) }
        let trouble = NextcloudError.Code(rawValue: head[6].word)
        guard trouble != nil || head[6].count == 0 else { throw DeviceError(.malformedKept) }
        // An earlier form does not say of which password it is.
        let mark = head.count == 8 ? head[7] : nil
        guard mark.map({ $0.count == NextcloudLogin.markDigits }) ?? true else {
            throw DeviceError(.malformedKept)
        }
        var registration: DeviceRegistration?
        if let row = rows.first, row.first?.word == Self.registered {
            rows.removeFirst()
            registration = DeviceRegistration(cells: Array(row.dropFirst()))
            guard registration != nil else { throw DeviceError(.malformedKept) }
        }
        var leaving: Unregistration?
        if let row = rows.first, row.first?.word == Self.left {
            rows.removeFirst()
            leaving = Unregistration(cells: Array(row.dropFirst()))
            guard leaving != nil else { throw DeviceError(.malformedKept) }
        }
        guard rows.isEmpty else { throw DeviceError(.malformedKept) }
        let key: RSAPrivateKey
        do { key = try RSAPrivateKey(pem: head[0]) } catch { throw DeviceError(.malformedKept) }
        try self.init(
            login,
            NextcloudRoutine(
                account: login.account, app: login.app, key: key, registration: registration,
                failures: failures))
        (self.isAsked, self.notBefore, self.changedAt) = (isAsked, notBefore, changedAt)
        (self.trouble, self.leaving) = (trouble, leaving)
        // At another server nothing of it stands, and a server ties it to the app password (§4.1).
        let isOther = mark.map { !($0 == login.mark(by: key.pem)) } ?? false
        if head[1].word != login.cloudID || isOther { routine.distrust() }
    }
}

extension SealedSubject {
    /// The two texts where push services deliver them.
    ///
    /// - Returns: `nil` for what is no push of this protocol.
    package init?(_ delivered: Delivered) {
        guard let members = Delivered.find(SubjectMembers.self, in: delivered.json),
            let subject = members.subject, let signature = members.signature
        else { return nil }
        self.init(subject: subject, signature: signature)
    }
}

private struct SubjectMembers: DeliveredMembers {
    var subject: Secret?
    var signature: Secret?

    var areThere: Bool { subject != nil && signature != nil }

    mutating func read(
        _ name: JSONStringSlice, _ kind: JSONKind, _ reader: inout JSONReader
    ) throws(FormatError) -> DeliveredMember {
        if name.equals("subject") {
            subject = try reader.stringOrSkip()?.secret()
        } else if name.equals("signature") {
            signature = try reader.stringOrSkip()?.secret()
        } else {
            return .foreign
        }
        return .own
    }
}
