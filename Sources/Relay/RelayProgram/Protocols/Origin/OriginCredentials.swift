#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import PushModel
import WireFormats
import ZulipPush

/// The file in which id and key at the relay stand: a JSON object with `zulip_org_id` and `zulip_org_key`,
/// mode 0600, written before the relay is called, so that whoever is killed in between has both.
enum OriginCredentials {
    /// What clients and the relay are told that this server is.
    static let version = "12.2-sealbell-\(Release.version)"

    private static let limitBytes = 4_096

    /// - Returns: `nil` where there is no file yet.
    /// - Throws: `CommandFailure` that names the file, and nothing of what it holds.
    static func read(_ file: String) throws(CommandFailure) -> (origin: ZulipOrigin, key: Secret)? {
        guard KitFile.isThere(file, limitBytes: limitBytes) else { return nil }
        guard !FileChecks.isOpenToAll(file) else {
            throw CommandFailure(
                .configuration, "origin.credentials (\(file)): \(FileChecks.openSentence)")
        }
        return try KitFile.read(file, "credentials of an origin") { () throws(FileFault) in
            try readSecret(file, limitBytes: limitBytes)
        } make: { row in
            guard let id = row["zulip_org_id"]?.reveal({ UUIDText($0) }),
                let key = row["zulip_org_key"], key.count == ZulipLimits.organizationKeyBytes
            else { return nil }
            return (ZulipOrigin(id: id.text, key: key, version: version), key)
        }
    }

    /// What is not there is gone as well.
    static func remove(_ file: String) { unlink(file) }

    static func write(_ id: String, _ key: Secret, to file: String) throws(CommandFailure) {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("zulip_org_id", id)
        writer.member("zulip_org_key", escaped: key)
        writer.endObject()
        try writeSecret(file, writer.takeSecret())
    }
}
