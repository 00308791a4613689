import PushModel
import WireFormats

/// The fields of a devices call, from a form or JSON body and, behind it in rank, the query (§5.1).
///
/// Fields that are not known are ignored, `format` among them.
struct DeviceFields {
    /// Real clients' own spelling.
    enum Name: String, CaseIterable {
        case pushToken, deviceIdentifier, deviceIdentifierSignature, userPublicKey, cloudId
        // Of a third party's clients (§5.6 d).
        case pushProvider, pushEnvironment, voipToken
        // Of Files on Android: its library sends the app's User-Agent here and its own in the head.
        case userAgent = "http.useragent"

        var text: StaticString {
            switch self {
            case .pushToken: "pushToken"
            case .deviceIdentifier: "deviceIdentifier"
            case .deviceIdentifierSignature: "deviceIdentifierSignature"
            case .userPublicKey: "userPublicKey"
            case .cloudId: "cloudId"
            case .pushProvider: "pushProvider"
            case .pushEnvironment: "pushEnvironment"
            case .voipToken: "voipToken"
            case .userAgent: "http.useragent"
            }
        }
    }

    private enum Value {
        case text(Secret)
        /// JSON of another type.
        case wrongType
    }

    private var values: [Name: Value] = [:]

    /// - Throws: `.malformedForm`, `.malformedJSON`.
    init(_ body: UnsafeRawBufferPointer, isJSON: Bool, query: String?) throws(NextcloudError) {
        if let query {
            guard query.utf8.count <= NextcloudLimits.queryBytes else { throw NextcloudError(.malformedForm) }
            try readForm(Array(query.utf8))
        }
        if isJSON {
            do throws(FormatError) { try readJSON(body) } catch { throw NextcloudError(.malformedJSON) }
        } else {
            try readForm(Array(body))
        }
    }

    /// A field that must be there.
    ///
    /// - Throws: `.missingParameter`, `.wrongType`.
    func required(_ name: Name) throws(NextcloudError) -> Secret {
        guard let value = try optional(name), value.count > 0 else {
            throw NextcloudError(.missingParameter, parameter: name.text)
        }
        return value
    }

    /// - Returns: `nil` where there is none.
    /// - Throws: `.wrongType`.
    func optional(_ name: Name) throws(NextcloudError) -> Secret? {
        switch values[name] {
        case nil: return nil
        case .text(let text)?: return text
        case .wrongType?: throw NextcloudError(.wrongType, parameter: name.text)
        }
    }

    /// What `http.useragent` tells. Nobody needs it, so a value that cannot be one tells nothing.
    var client: ClientHint {
        guard case .text(let text)? = values[.userAgent], text.count <= NextcloudLimits.userAgentBytes
        else { return .none }
        return ClientHint(userAgent: text.reveal { String(decoding: $0, as: UTF8.self) })
    }

    private mutating func readForm(_ bytes: [UInt8]) throws(NextcloudError) {
        var bytes = bytes
        defer { bytes.withUnsafeMutableBytes { wipe($0) } }
        let form: Form
        do { form = try Form.parse(bytes, fieldLimit: NextcloudLimits.formFields) } catch {
            throw NextcloudError(.malformedForm)
        }
        for field in form.fields {
            guard let name = Name(rawValue: field.name) else { continue }
            // Of doubles the last counts.
            values[name] = .text(Secret(field.value))
        }
    }

    private mutating func readJSON(_ body: UnsafeRawBufferPointer) throws(FormatError) {
        // A call by query alone may name a type all the same.
        guard body.count > 0 else { return }
        var reader = JSONReader(body, depthLimit: NextcloudLimits.jsonDepth)
        try reader.beginObject()
        while let member = try reader.nextMember() {
            guard let name = Name.allCases.first(where: { member.equals($0.text) }) else {
                try reader.skipValue()
                continue
            }
            if try reader.peek() == .string {
                values[name] = .text(try reader.readString().secret())
            } else {
                try reader.skipValue()
                values[name] = .wrongType
            }
        }
        try reader.end()
    }
}
