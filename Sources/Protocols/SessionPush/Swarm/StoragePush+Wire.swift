package import PushModel
package import WireFormats

extension StoragePush {
    /// Reads the one part that the command has. Keys that are not known are passed over.
    ///
    /// - Throws: `.malformedBencode`, `.wrongType` where a value is missing or has another form, `.tooLarge`.
    package init(parsing body: UnsafeRawBufferPointer) throws(FormatError) {
        guard body.count <= SwarmFormLimits.pushBytes else { throw FormatError(.tooLarge) }
        var reader = BencodeReader(body, depthLimit: SwarmFormLimits.pushDepth)
        try reader.beginDictionary()
        let account = try reader.required("@")
        let hash = try reader.required("h")
        guard let account = AccountID(Secret(copying: account)),
            SwarmFormLimits.hashBytes.contains(hash.count)
        else { throw FormatError(.wrongType) }
        guard let namespace = Int16(exactly: try reader.requiredInteger("n")) else {
            throw FormatError(.wrongType)
        }
        let timestamp = try reader.requiredInteger("t")
        let expiry = try reader.requiredInteger("z")
        var data: Secret?
        if try reader.find("~") { data = Secret(copying: try reader.readString()) }
        try reader.endDictionary()
        try reader.end()
        self.init(
            account: account, hash: Secret(copying: hash), namespace: namespace,
            timestamp: UnixTime(milliseconds: timestamp), expiry: UnixTime(milliseconds: expiry), data: data)
    }

    /// The command's one part.
    package func serialized() -> Secret {
        var writer = BencodeWriter(reserving: 256 + (data?.count ?? 0))
        writer.beginDictionary()
        writer.key("@")
        account.bytes.reveal { writer.string($0) }
        writer.key("h")
        hash.reveal { writer.string($0) }
        writer.key("n")
        writer.int(Int64(namespace))
        writer.key("t")
        writer.int(timestamp.milliseconds)
        writer.key("z")
        writer.int(expiry.milliseconds)
        if let data {
            writer.key("~")
            data.reveal { writer.string($0) }
        }
        writer.endDictionary()
        return writer.takeSecret()
    }
}

extension BencodeReader {
    fileprivate mutating func required(_ key: StaticString) throws(FormatError) -> UnsafeRawBufferPointer {
        guard try find(key) else { throw FormatError(.wrongType) }
        return try readString()
    }

    fileprivate mutating func requiredInteger(_ key: StaticString) throws(FormatError) -> Int64 {
        guard try find(key), let number = try readInteger().int64 else { throw FormatError(.wrongType) }
        return number
    }
}
