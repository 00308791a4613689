package import PushModel
import WireFormats

/// What a push says once it is open (§3.5).
public enum NextcloudContent: Sendable, Hashable {
    /// Something for the screen.
    case alert(NextcloudAlert)
    /// These notifications of the account are to go.
    case withdrawal([Int64])
    /// All notifications of the account are to go.
    case withdrawalOfAll

    /// Reads a plaintext. Members may come in any order, and unknown ones are passed over.
    ///
    /// - Returns: `nil` for JSON of a form that this version does not know: to be dropped silently.
    /// - Throws: `.malformedSubject` for what is no JSON.
    package static func read(_ plain: Secret) throws(NextcloudError) -> NextcloudContent? {
        let json: JSONValue
        do {
            json = try plain.reveal { (bytes) throws(FormatError) in
                try JSONValue.parse(bytes, limitBytes: NextcloudLimits.plaintextReadBytes)
            }
        } catch { throw NextcloudError(.malformedSubject) }
        if json["delete-all"]?.bool == true { return .withdrawalOfAll }
        if json["delete-multiple"]?.bool == true {
            let ids = json["nids"]?.array ?? []
            let numbers = ids.compactMap(\.int64)
            return ids.isEmpty || numbers.count != ids.count ? nil : .withdrawal(numbers)
        }
        if json["delete"]?.bool == true { return json["nid"]?.int64.map { .withdrawal([$0]) } }
        return NextcloudAlert(json).map { .alert($0) }
    }
}

/// A notification as a device reads it. Older servers leave members out.
public struct NextcloudAlert: Sendable, Hashable {
    /// `nid`: the notification's number at its server.
    public let id: Int64?
    /// Which of the server's apps says it: `spreed` is Talk. At most 256 bytes, as all of a push's texts.
    public let app: String
    /// For the screen, as far as it came.
    public let subject: String?
    /// `type`. Of Talk: `chat`, `room`, `call`, `recording`, `reminder`, `remote_talk_share`.
    public let objectType: String?
    /// `id`. Of Talk: the token of the conversation.
    public let objectID: String?

    init?(_ json: JSONValue) {
        let id = json["nid"]?.int64
        let subject = json["subject"]?.string
        guard let app = json["app"]?.string, id != nil || subject != nil else { return nil }
        self.id = id
        self.app = app
        self.subject = subject
        objectType = json["type"]?.string
        objectID = json["id"]?.string
    }

    /// Whether the subject ends where the server had to cut it.
    public var isCut: Bool { subject?.unicodeScalars.last == "\u{2026}" }

    /// Whether to ask the server for the whole notification: something is missing, or was cut.
    public var needsDetails: Bool {
        id == nil || subject == nil || objectType == nil || objectID == nil || isCut
    }

    /// Where the whole notification is, behind the server's URL: by its number, or in the list of all of
    /// them where there is none (§3.5 step 6).
    public var detailsPath: String {
        NextcloudPaths.notifications + (id.map { "/\($0)" } ?? "") + "?format=json"
    }
}
