import PushModel
import WireFormats

/// One element of a body, written (§3.1, §3.3).
enum CallElement {
    /// - Parameter signedAt: seconds; the signature is good for 14 days.
    static func subscribe(
        _ watched: WatchedAccount, _ token: SessionDeviceToken, encKey: Secret, signedAt: Int64
    ) throws(SessionError) -> Secret {
        let text = SignedText.monitor(
            watched.account, at: signedAt, wantsData: watched.content == .included, watched.namespaces)
        let signature = try watched.signature(over: text)
        var writer = JSONWriter(reserving: room(token) + 7 * watched.namespaces.count)
        writer.beginObject()
        identity(watched, &writer)
        writer.beginArray("namespaces")
        for namespace in watched.namespaces { writer.int(Int64(namespace)) }
        writer.endArray()
        writer.member("data", watched.content == .included)
        proof(signature, signedAt, &writer)
        service(token, &writer)
        writer.hex("enc_key", encKey)
        delegation(watched, &writer)
        writer.endObject()
        return writer.takeSecret()
    }

    /// - Parameter signedAt: seconds; the signature is good for a day.
    static func unsubscribe(
        _ watched: WatchedAccount, _ token: SessionDeviceToken, signedAt: Int64
    ) throws(SessionError) -> Secret {
        let signature = try watched.signature(
            over: SignedText.unsubscribe(watched.account, at: signedAt))
        var writer = JSONWriter(reserving: room(token))
        writer.beginObject()
        identity(watched, &writer)
        proof(signature, signedAt, &writer)
        service(token, &writer)
        delegation(watched, &writer)
        writer.endObject()
        return writer.takeSecret()
    }

    /// One object, or an array of several.
    static func body(_ elements: [Secret]) -> Secret {
        if elements.count == 1 { return elements[0] }
        var writer = JSONWriter(reserving: elements.reduce(2) { $0 + $1.count + 1 })
        writer.beginArray()
        for element in elements { element.reveal { writer.raw($0) } }
        writer.endArray()
        return writer.takeSecret()
    }

    // MARK: parts

    /// Names, ids, keys and signatures have 700 bytes; a token may be escaped.
    private static func room(_ token: SessionDeviceToken) -> Int { 1_024 + 6 * token.text.count }

    private static func identity(_ watched: WatchedAccount, _ writer: inout JSONWriter) {
        writer.hex("pubkey", watched.account.bytes)
        if let key = watched.ownerKey { writer.hex("session_ed25519", key.bytes) }
    }

    private static func proof(_ signature: Secret, _ signedAt: Int64, _ writer: inout JSONWriter) {
        writer.member("sig_ts", signedAt)
        writer.base64("signature", signature)
    }

    private static func service(_ token: SessionDeviceToken, _ writer: inout JSONWriter) {
        writer.member("service", token.service.rawValue)
        writer.beginObject("service_info")
        writer.member("token", utf8: token.text)
        writer.endObject()
    }

    private static func delegation(_ watched: WatchedAccount, _ writer: inout JSONWriter) {
        guard let subaccount = watched.subaccount else { return }
        writer.hex("subaccount", subaccount.token)
        writer.base64("subaccount_sig", subaccount.ownerSignature)
    }
}

extension JSONWriter {
    fileprivate mutating func hex(_ name: StaticString, _ value: Secret) {
        key(name)
        value.hexDigits.reveal { string(escaped: $0) }
    }

    fileprivate mutating func base64(_ name: StaticString, _ value: Secret) {
        key(name)
        var text = value.reveal { Base64.encode($0) }
        text.withUnsafeMutableBytes {
            string(escaped: UnsafeRawBufferPointer($0))
            wipe($0)
        }
    }
}
