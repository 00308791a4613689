package import PushModel
package import WireFormats

/// `server/register` (§5.2).
package struct SignUpForm: Sendable {
    package let id: UUIDText
    /// Hash of `zulip_org_key`.
    package let keyHash: Secret
    /// Hash of `new_org_key`: the key is rotated.
    package let newKeyHash: Secret?
    package let hostname: ZulipHostname
    package let mail: ContactMail

    /// Parameters are judged in the deployed order: each in its turn for being there and for its length, and
    /// then their forms.
    ///
    /// - Throws: `.missingParameter` and `.wrongLength` parameter by parameter; `.invalidHostname`,
    ///   `.invalidMail`, `.mailDomainRefused`, `.invalidUUID`, in this order.
    package init(_ form: Form) throws(ZulipError) {
        let id = try form.require("zulip_org_id", ZulipLimits.organizationIDBytes)
        let key = try form.require("zulip_org_key", ZulipLimits.organizationKeyBytes)
        let host = try form.require("hostname")
        guard host.count <= ZulipLimits.hostnameBytes else {
            throw ZulipError(.wrongLength, parameter: "hostname")
        }
        let mail = try form.require("contact_email")
        let newKey = form["new_org_key"]
        if newKey != nil { _ = try form.require("new_org_key", ZulipLimits.organizationKeyBytes) }
        guard let hostname = ZulipHostname(host) else { throw ZulipError(.invalidHostname) }
        guard let contact = ContactMail(mail) else { throw ZulipError(.invalidMail) }
        if contact.isReserved { throw ZulipError(.mailDomainRefused) }
        guard let uuid = withBytes(id, { UUIDText($0) }), uuid.isVersion4 else {
            throw ZulipError(.invalidUUID)
        }
        self.id = uuid
        keyHash = ServerCredentials.hash(key: key)
        newKeyHash = newKey.map { ServerCredentials.hash(key: $0) }
        self.hostname = hostname
        self.mail = contact
    }
}

/// `server/register/transfer` and `server/register/verify_challenge` (§5.2).
package struct TransferForm: Sendable {
    package let hostname: ZulipHostname
    /// The path element under which the host shows the secret; only in the second call.
    package let accessToken: String?

    package init(_ form: Form, isVerification: Bool) throws(ZulipError) {
        let host = try form.require("hostname")
        let token = isVerification ? try form.require("access_token") : nil
        guard let hostname = ZulipHostname(host) else { throw ZulipError(.invalidHostname) }
        if let token {
            // It becomes part of a URL, so nothing that could leave its path element is taken.
            guard (1...ZulipLimits.accessTokenBytes).contains(token.count), token.allSatisfy(Self.isTokenByte)
            else { throw ZulipError(.wrongType, parameter: "access_token") }
        }
        self.hostname = hostname
        accessToken = token.map { String(decoding: $0, as: UTF8.self) }
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: true
        default: false
        }
    }
}

extension Form {
    /// The value of a field.
    ///
    /// - Throws: `.missingParameter` with its name.
    func require(_ name: StaticString) throws(ZulipError) -> [UInt8] {
        guard let value = self["\(name)"] else { throw ZulipError(.missingParameter, parameter: name) }
        return value
    }

    /// The value of a field that has exactly so many bytes.
    ///
    /// - Throws: `.missingParameter`, `.wrongLength` with its name.
    fileprivate func require(_ name: StaticString, _ byteCount: Int) throws(ZulipError) -> [UInt8] {
        let value = try require(name)
        guard value.count == byteCount else { throw ZulipError(.wrongLength, parameter: name) }
        return value
    }

    /// Names that the call does not know, each once and in order of code points, as the deployed relay lists
    /// them; at most ``ZulipLimits/ignoredParametersListed``.
    func unknown(_ known: [String]) -> [String] {
        var names: [String] = []
        for field in fields where !known.contains(field.name) && !names.contains(field.name) {
            if names.count == ZulipLimits.ignoredParametersListed { break }
            if field.name.utf8.count <= 64 { names.append(field.name) }
        }
        return names.sorted { $0.unicodeScalars.lexicographicallyPrecedes($1.unicodeScalars) }
    }
}
