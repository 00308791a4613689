package import WireFormats

/// `push/e2ee/stale_devices` (§14.7), not yet believed.
package struct StaleForm: Sendable {
    package let realm: UUIDText
    /// Ids above this one are asked for; 0 or more.
    package let after: Int64
    /// 1 to ``ZulipLimits/staleIDsPerPage``.
    package let limit: Int

    /// - Throws: `.missingParameter`; `.wrongType` for a realm that is no UUID, and for a number that is none
    ///   or out of its range.
    package init(_ form: Form) throws(ZulipError) {
        let realm = try form.require("realm_uuid")
        guard let uuid = withBytes(realm, { UUIDText(anyCase: $0) }) else {
            throw ZulipError(.wrongType, parameter: "realm_uuid")
        }
        self.realm = uuid
        after = try Self.number(form, "after", 0...Int64.max, absent: 0)
        let most = Int64(ZulipLimits.staleIDsPerPage)
        limit = Int(try Self.number(form, "limit", 1...most, absent: most))
    }

    private static func number(
        _ form: Form, _ name: StaticString, _ range: ClosedRange<Int64>, absent: Int64
    ) throws(ZulipError) -> Int64 {
        guard let text = form["\(name)"] else { return absent }
        guard let value = CanonicalInteger.read(text), range.contains(value) else {
            throw ZulipError(.wrongType, parameter: name)
        }
        return value
    }
}
