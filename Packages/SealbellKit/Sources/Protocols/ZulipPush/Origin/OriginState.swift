public import PushModel
import WireFormats

/// `POST /api/v1/register` (§3.5, §14.10): which state a client wants, and which events.
public struct OriginStateForm: Sendable, Hashable {
    /// `nil`: all.
    public let fetched: Set<String>?
    /// `nil`: all.
    public let events: Set<String>?

    /// Reads a form. As deployed, what is fetched is what is followed where it is not said otherwise.
    ///
    /// - Throws: `.malformedForm`, `.malformed` for a value that is no JSON list of texts.
    public init(_ body: Secret) throws(OriginRefusal) {
        let form = try OriginFields.form(body)
        events = try Self.types(form, "event_types")
        fetched = form["fetch_event_types"] == nil ? events : try Self.types(form, "fetch_event_types")
    }

    private static func types(_ form: Form, _ name: StaticString) throws(OriginRefusal) -> Set<String>? {
        guard let text = form["\(name)"] else { return nil }
        do throws(FormatError) {
            return try withBytes(text) { (bytes) throws(FormatError) in
                var reader = JSONReader(bytes, depthLimit: 4)
                var types: Set<String> = []
                try reader.beginArray()
                while try reader.nextElement() {
                    let type = try reader.readString()
                    // Others than ours are short as well; what is longer is none.
                    if type.raw.count <= 64 { types.insert(type.string()) }
                }
                try reader.end()
                return types
            }
        } catch { throw OriginRefusal(.malformed, name) }
    }
}

extension ZulipRegistrations {
    /// The answer to `POST /api/v1/register`: a user's state beside a queue that was opened in the same turn,
    /// so that no event is between them.
    ///
    /// - Parameter settings: of the server.
    /// - Parameter requirement: what it and the realm require.
    public func body(
        _ form: OriginStateForm, queue: OriginQueues.ID, settings: OriginSettings,
        requirement: EncryptionRequirement
    ) -> [UInt8] {
        func wants(_ type: String) -> Bool { form.fetched?.contains(type) ?? true }
        var writer = JSONWriter(reserving: 4_096)
        writer.beginObject()
        writer.member("result", "success")
        writer.member("msg", "")
        writer.member("queue_id", queue)
        writer.member("last_event_id", Int64(-1))
        writer.member("zulip_version", settings.version)
        writer.member("zulip_feature_level", settings.featureLevel)
        if wants("device") {
            writer.key("devices")
            writer.raw(state(.v12))
        }
        if wants("push_device") {
            writer.key("push_devices")
            writer.raw(state(.v11))
        }
        if wants("push_account") {
            writer.key("push_account_ids")
            writer.raw(state(.zap))
        }
        if wants("realm") {
            writer.member("realm_push_notifications_enabled", settings.hasRelay)
            writer.optional("realm_push_notifications_enabled_end_timestamp", nil as Int64?)
            writer.member("realm_require_e2ee_push_notifications", requirement.isInForce)
        }
        writer.endObject()
        return writer.bytes
    }
}
