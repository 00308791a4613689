package import PushModel
package import WireFormats

extension StorageNotice {
    /// Reads the one part that the command has, and holds on to it. Keys that are not known are passed over.
    ///
    /// - Throws: `.malformedBencode`, `.wrongType` where a value is missing or has another form, `.tooLarge`.
    package init(parsing body: Secret) throws(FormatError) {
        self = try body.reveal { (bytes) throws(FormatError) in try StorageNotice(bytes, of: body) }
    }

    /// The same from memory that is somebody else's.
    package init(parsing body: UnsafeRawBufferPointer) throws(FormatError) {
        guard body.count <= SwarmFormLimits.pushBytes else { throw FormatError(.tooLarge) }
        try self.init(parsing: Secret(copying: body))
    }

    private init(_ bytes: UnsafeRawBufferPointer, of body: Secret) throws(FormatError) {
        guard bytes.count <= SwarmFormLimits.pushBytes else { throw FormatError(.tooLarge) }
        var reader = BencodeReader(bytes, depthLimit: SwarmFormLimits.pushDepth)
        try reader.beginDictionary()
        let account = try reader.required("@")
        let hash = try reader.requiredPlace("h")
        guard let account = AccountID(Secret(copying: account)),
            SwarmFormLimits.hashBytes.contains(hash.count)
        else { throw FormatError(.wrongType) }
        guard let namespace = Int16(exactly: try reader.requiredInteger("n")) else {
            throw FormatError(.wrongType)
        }
        let timestamp = try reader.requiredInteger("t")
        let expiry = try reader.requiredInteger("z")
        let data = try reader.find("~") ? try reader.readPlace() : nil
        try reader.endDictionary()
        try reader.end()
        self.init(
            account: account, in: body, hash: hash, namespace: namespace,
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

    fileprivate mutating func requiredPlace(_ key: StaticString) throws(FormatError) -> Range<Int> {
        guard try find(key) else { throw FormatError(.wrongType) }
        return try readPlace()
    }

    /// Where the next string stands in the reader's bytes.
    fileprivate mutating func readPlace() throws(FormatError) -> Range<Int> {
        let count = try readString().count
        return position - count..<position
    }

    fileprivate mutating func requiredInteger(_ key: StaticString) throws(FormatError) -> Int64 {
        guard try find(key), let number = try readInteger().int64 else { throw FormatError(.wrongType) }
        return number
    }
}
