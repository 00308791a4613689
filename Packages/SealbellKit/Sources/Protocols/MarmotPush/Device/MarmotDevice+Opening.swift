public import PushModel
public import SealbellKit
import WireFormats

extension MarmotDevice {
    /// Reads a wake. It is the same for every group, account and device, so that it says nothing.
    ///
    /// - Returns: `.fetch`: fetch all groups, and show what is new. `.ignore`: this device wants no pushes.
    /// - Throws: `.foreign` for anything else than a wake: content beside `aps`, or an `aps` that neither
    ///   wakes the app nor lets its extension write other words.
    public func open(_ delivered: Delivered, at now: UnixTime) throws(DeviceError) -> Opened<Void> {
        // What is no such JSON is no wake.
        guard delivered.json.reveal({ (try? Self.isWake($0)) ?? false }) else { throw DeviceError(.foreign) }
        return leaf.isOptedOut ? .ignore(.switchedOff) : .fetch(())
    }

    private static func isWake(_ json: UnsafeRawBufferPointer) throws(FormatError) -> Bool {
        var reader = JSONReader(json, depthLimit: KitLimits.deliveredDepth)
        var isWake = false
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("content_available") {
                isWake = try isOn(&reader) || isWake
            } else if name.equals("aps"), try reader.peek() == .object {
                try reader.beginObject()
                while let member = try reader.nextMember() {
                    if member.equals("content-available") || member.equals("mutable-content") {
                        isWake = try isOn(&reader) || isWake
                    } else {
                        try reader.skipValue()
                    }
                }
            } else {
                return false
            }
        }
        try reader.end()
        return isWake
    }

    /// 1 or `true`, as a number, a word or a text.
    private static func isOn(_ reader: inout JSONReader) throws(FormatError) -> Bool {
        let text = try reader.skipValue()
        return ["1", "true", "\"1\"", "\"true\""].contains { text.elementsEqual($0.utf8) }
    }

    /// Active when the group knows this phone's token; pending while it was not told, or not of the end.
    public func status(at now: UnixTime) -> DeviceStatus {
        let state = presentState
        let since = state == self.state ? since : now
        let age = since.map { now.since($0) } ?? .zero
        let isQuiet = state == .pending && age >= .zero && age < MarmotLimits.quietTime
        let advice: DeviceStatus.Advice =
            switch state {
            case .none: leaf.isOptedOut ? .none : .giveToken
            case .pending: isQuiet ? .none : .retrying
            case .active, .failed: .none
            }
        return DeviceStatus(state: state, since: since, detail: nil, isQuiet: isQuiet, advice: advice)
    }

    private var presentState: DeviceStatus.State {
        if owed.contains(where: { !$0.isAnswer }) { return .pending }
        return hasOwnToken ? .active : .none
    }

    /// Notes since when it is as it is.
    mutating func mark(_ now: UnixTime) {
        let present = presentState
        guard present != state else { return }
        (state, since) = (present, now)
    }
}
