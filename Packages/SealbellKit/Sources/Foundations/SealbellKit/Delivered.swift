public import PushModel
import WireFormats

/// What the system handed the app: APNs' `userInfo`, or FCM's `data`.
///
/// At most 64 KiB as JSON, at most 8 objects and arrays within each other. Numbers may be text, and the other
/// way round: systems do not agree about it. It prints as nothing.
public struct Delivered: Sendable {
    /// One JSON text: an object, or a text that is JSON again.
    package let json: Secret

    /// What APNs delivered: `userInfo` of `application(_:didReceiveRemoteNotification:)`, or
    /// `request.content.userInfo` in a notification service extension.
    ///
    /// - Parameter userInfo: texts, numbers, booleans, null, and arrays and dictionaries of them.
    /// - Throws: `.tooLarge` above 64 KiB of JSON or 8 levels; `.foreign` for anything that is no JSON.
    public init(userInfo: [AnyHashable: Any]) throws(DeviceError) {
        var writer = JSONWriter(reserving: 8 << 10)
        try Self.write(userInfo, into: &writer, levels: KitLimits.deliveredDepth)
        try Self.checkRoom(0, writer)
        json = writer.takeSecret()
    }

    /// What FCM delivered: `getData()` of a `RemoteMessage`.
    ///
    /// - Parameter data: texts by their names, at most 64 KiB of JSON.
    /// - Throws: `.tooLarge` above that.
    public init(data: [String: String]) throws(DeviceError) {
        var writer = JSONWriter(reserving: 8 << 10)
        writer.beginObject()
        for (name, text) in data {
            try Self.checkRoom(name.utf8.count, writer)
            writer.key(name)
            try Self.write(text, into: &writer)
        }
        writer.endObject()
        try Self.checkRoom(0, writer)
        json = writer.takeSecret()
    }

    /// Either of them as JSON: for tests, tools, and other push services.
    ///
    /// - Parameter json: UTF-8, at most 64 KiB and 8 levels: an object, or a text that is JSON again.
    /// - Throws: `.tooLarge` above that; `.foreign` for anything else.
    public init(json: Secret) throws(DeviceError) {
        guard json.count <= KitLimits.deliveredBytes else { throw DeviceError(.tooLarge) }
        try json.reveal { (bytes) throws(DeviceError) in
            do throws(FormatError) { try Self.check(bytes) } catch {
                throw DeviceError(error.code == .tooDeep ? .tooLarge : .foreign)
            }
        }
        self.json = json
    }

    private static func check(_ bytes: UnsafeRawBufferPointer) throws(FormatError) {
        var reader = JSONReader(bytes, depthLimit: KitLimits.deliveredDepth)
        let kind = try reader.peek()
        guard kind == .object || kind == .string else { throw FormatError(.wrongType) }
        try reader.skipValue()
        try reader.end()
    }

    // MARK: values of the system

    private static func write(
        _ members: [AnyHashable: Any], into writer: inout JSONWriter, levels: Int
    ) throws(DeviceError) {
        guard levels > 0 else { throw DeviceError(.tooLarge) }
        writer.beginObject()
        for (key, value) in members {
            guard let name = key.base as? String else { throw DeviceError(.foreign) }
            try checkRoom(name.utf8.count, writer)
            writer.key(name)
            try write(any: value, into: &writer, levels: levels - 1)
        }
        writer.endObject()
    }

    /// Apple's objects cast to Swift's values, where Foundation is there; a number of theirs to the first
    /// type that holds it exactly, so that a boolean of theirs is 0 or 1.
    private static func write(
        any value: Any, into writer: inout JSONWriter, levels: Int
    ) throws(DeviceError) {
        try checkRoom(0, writer)
        if let text = value as? String { return try write(text, into: &writer) }
        if let number = value as? Int64 { return writer.int(number) }
        if let number = value as? any BinaryInteger { return writer.raw(Array(String(number).utf8)) }
        if let flag = value as? Bool { return writer.bool(flag) }
        if let number = value as? Double { return try write(number, into: &writer) }
        if let number = value as? Float { return try write(Double(number), into: &writer) }
        if let members = value as? [AnyHashable: Any] {
            return try write(members, into: &writer, levels: levels)
        }
        if let elements = value as? [Any] { return try write(elements, into: &writer, levels: levels) }
        guard isNull(value) else { throw DeviceError(.foreign) }
        writer.null()
    }

    private static func write(
        _ elements: [Any], into writer: inout JSONWriter, levels: Int
    ) throws(DeviceError) {
        guard levels > 0 else { throw DeviceError(.tooLarge) }
        writer.beginArray()
        for element in elements { try write(any: element, into: &writer, levels: levels - 1) }
        writer.endArray()
    }

    private static func write(_ text: String, into writer: inout JSONWriter) throws(DeviceError) {
        try checkRoom(text.utf8.count, writer)
        writer.string(text)
        try checkRoom(0, writer)
    }

    private static func write(_ number: Double, into writer: inout JSONWriter) throws(DeviceError) {
        guard number.isFinite else { throw DeviceError(.foreign) }
        if let whole = Int64(exactly: number) { return writer.int(whole) }
        writer.raw(Array(number.description.utf8))
    }

    /// `NSNull`, without Foundation, or an optional that is `nil`.
    private static func isNull(_ value: Any) -> Bool {
        let mirror = Mirror(reflecting: value)
        if mirror.displayStyle == .optional { return mirror.children.isEmpty }
        return String(describing: type(of: value)) == "NSNull"
    }

    private static func checkRoom(_ more: Int, _ writer: JSONWriter) throws(DeviceError) {
        guard writer.bytes.count <= KitLimits.deliveredBytes - min(more, KitLimits.deliveredBytes) else {
            throw DeviceError(.tooLarge)
        }
    }
}

extension Delivered: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `‹delivered›`, whatever it is.
    public var description: String { "‹delivered›" }
    /// The same as ``description``.
    public var debugDescription: String { description }
    /// Without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
