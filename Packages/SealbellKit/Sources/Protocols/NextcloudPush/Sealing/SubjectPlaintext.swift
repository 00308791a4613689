import PushModel

/// The texts that an origin encrypts (§4.4), in the spelling of ``PHPText``.
enum SubjectPlaintext {
    /// `{"nid":…,"app":…,"subject":…,"type":…,"id":…}`, with a subject that is cut where it has no room.
    ///
    /// - Returns: at most 204 bytes, unless `app`, `type` and `id` alone take more.
    static func notification(_ notification: NextcloudNotification) -> Secret {
        // The frame has the subject's quotes in it; the deployed server takes them off a second time.
        let frame = write(notification, subject: []).count + 2
        // Long ids leave less than nothing; then the subject is empty.
        let room = max(0, NextcloudLimits.plaintextBytes - frame)
        let subject = cut(notification.subject, room: room)
        var text = write(notification, subject: subject)
        return text.takeSecret()
    }

    /// The texts that take notifications off a device's screen: for Talk devices ten at a time, and a rest
    /// of one by itself; for all others one by one, because their apps know no other form.
    static func withdrawals(of ids: [Int64], for group: DeviceGroup) -> [Secret] {
        guard group == .talk else { return ids.map(withdrawal) }
        var texts: [Secret] = []
        var rest = ids[...]
        while !rest.isEmpty {
            let part = rest.prefix(NextcloudLimits.withdrawnAtOnce)
            rest = rest.dropFirst(part.count)
            texts.append(part.count == 1 ? withdrawal(part[part.startIndex]) : withdrawal(of: part))
        }
        return texts
    }

    /// Everything of the account.
    static var withdrawalOfAll: Secret { Secret(#"{"delete-all":true}"#.utf8) }

    /// A subject as far as it fits: its first `room` characters, less five at a time while it is too long in
    /// bytes, and an ellipsis where anything was lost.
    static func cut(_ subject: String, room: Int) -> [Unicode.Scalar] {
        let whole = subject.unicodeScalars
        var kept = Array(whole.prefix(room))
        let isWhole =
            whole.index(whole.startIndex, offsetBy: room, limitedBy: whole.endIndex)
            .map { $0 == whole.endIndex } ?? true
        var bytes = kept.reduce(0) { $0 + PHPText.byteCount($1) }
        var isCut = !isWhole
        while bytes > room {
            for scalar in kept.suffix(Self.step) { bytes -= PHPText.byteCount(scalar) }
            kept.removeLast(min(Self.step, kept.count))
            isCut = true
        }
        return isCut ? kept + ["\u{2026}"] : kept
    }

    private static let step = 5

    private static func withdrawal(_ id: Int64) -> Secret {
        var text = PHPText()
        text.raw(#"{"nid":"#)
        text.int(id)
        text.raw(#","delete":true}"#)
        return text.takeSecret()
    }

    private static func withdrawal(of ids: ArraySlice<Int64>) -> Secret {
        var text = PHPText()
        text.raw(#"{"nids":["#)
        for (place, id) in ids.enumerated() {
            if place > 0 { text.raw(",") }
            text.int(id)
        }
        text.raw(#"],"delete-multiple":true}"#)
        return text.takeSecret()
    }

    private static func write(_ notification: NextcloudNotification, subject: [Unicode.Scalar]) -> PHPText {
        var text = PHPText(reserving: 2 * NextcloudLimits.plaintextBytes)
        text.raw(#"{"nid":"#)
        text.int(notification.id)
        text.raw(#","app":"#)
        text.string(notification.app)
        text.raw(#","subject":"#)
        text.string(subject)
        text.raw(#","type":"#)
        text.string(notification.objectType)
        text.raw(#","id":"#)
        text.string(notification.objectID)
        text.raw("}")
        return text
    }
}

extension PHPText { fileprivate var count: Int { bytes.count } }
