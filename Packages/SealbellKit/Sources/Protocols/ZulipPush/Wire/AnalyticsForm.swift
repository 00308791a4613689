import PushModel
package import WireFormats

/// `server/analytics` (§5.3): which realms a server has, and how far its rows go. The rows are not kept.
package struct AnalyticsForm: Sendable {
    /// Highest ids of the rows in this call; 0 where there were none.
    package var lastRealmCount: Int64 = 0
    package var lastInstallationCount: Int64 = 0
    package var lastAuditLog: Int64 = 0
    /// `nil` when the call does not speak of realms. Without doubles.
    package var realms: [UUIDText]?

    /// - Throws: `.missingParameter`, `.malformedJSON`, `.wrongType`, `.tooManyRequests`.
    package init(_ form: Form) throws(ZulipError) {
        lastRealmCount = try Self.lastID(form.require("realm_counts"), "realm_counts")
        lastInstallationCount = try Self.lastID(form.require("installation_counts"), "installation_counts")
        if let rows = form["realmauditlog_rows"], !Self.isNull(rows) {
            lastAuditLog = try Self.lastID(rows, "realmauditlog_rows")
        }
        if let realms = form["realms"], !Self.isNull(realms) {
            self.realms = try Self.readRealms(realms)
        }
    }

    private static func isNull(_ text: [UInt8]) -> Bool { withBytes(text) { bytes($0, equal: "null") } }

    /// The highest `id` of a list of objects.
    private static func lastID(_ text: [UInt8], _ parameter: StaticString) throws(ZulipError) -> Int64 {
        try list(text, parameter) { reader in
            var last: Int64 = 0
            while try reader.nextElement() {
                try reader.beginObject()
                while let name = try reader.nextMember() {
                    guard name.equals("id") else {
                        try reader.skipValue()
                        continue
                    }
                    guard let id = try reader.readNumber().int64 else { throw FormatError(.wrongType) }
                    last = max(last, id)
                }
            }
            return last
        }
    }

    private static func readRealms(_ text: [UInt8]) throws(ZulipError) -> [UUIDText] {
        try list(text, "realms") { reader in
            var realms: [UUIDText] = []
            var seen: Set<UUIDText> = []
            while try reader.nextElement() {
                guard seen.count < ZulipLimits.realmsPerServer else { throw ZulipError(.tooManyRequests) }
                let realm = try readRealm(&reader)
                if seen.insert(realm).inserted { realms.append(realm) }
            }
            return realms
        }
    }

    private static func readRealm(_ reader: inout JSONReader) throws -> UUIDText {
        var uuid: UUIDText?
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("uuid") {
                uuid = withBytes(try reader.readString().decoded()) { UUIDText(anyCase: $0) }
                if uuid == nil { throw FormatError(.wrongType) }
            } else {
                // Members beyond the deployed ones are refused there too (§5.3).
                guard realmMembers.contains(name.string()) else { throw FormatError(.wrongType) }
                try reader.skipValue()
            }
        }
        guard let uuid else { throw FormatError(.wrongType) }
        return uuid
    }

    private static func list<Result>(
        _ text: [UInt8], _ parameter: StaticString, _ read: (inout JSONReader) throws -> Result
    ) throws(ZulipError) -> Result {
        try withBytes(text) { (bytes) throws(ZulipError) in
            var reader = JSONReader(bytes, depthLimit: ZulipLimits.jsonDepth)
            do {
                try reader.beginArray()
                let result = try read(&reader)
                try reader.end()
                return result
            } catch let error as ZulipError {
                throw error
            } catch let error as FormatError {
                throw error.code == .wrongType
                    ? ZulipError(.wrongType, parameter: parameter) : ZulipError(.malformedJSON)
            } catch {
                throw ZulipError(.malformedJSON)
            }
        }
    }

    private static let realmMembers: Set<String> = [
        "id", "host", "url", "name", "org_type", "date_created", "deactivated", "is_system_bot_realm",
        "authentication_methods", "uuid_owner_secret"
    ]
}
