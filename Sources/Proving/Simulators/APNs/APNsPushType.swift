/// `apns-push-type` (docs/push-services.md §2.4).
public enum APNsPushType: String, Sendable, Hashable, CaseIterable {
    /// As the header has it; each has its own topic.
    case alert, background, voip, complication, fileprovider, location, liveactivity, pushtotalk, widgets
    /// As the header has it; `mdm` has a topic that is no bundle id.
    case controls, mdm

    /// The topic's suffix after the bundle id; `nil` if the topic is not a bundle id.
    public var topicSuffix: String? {
        switch self {
        case .alert, .background: ""
        case .voip: ".voip"
        case .complication: ".complication"
        case .fileprovider: ".pushkit.fileprovider"
        case .location: ".location-query"
        case .liveactivity: ".push-type.liveactivity"
        case .pushtotalk: ".voip-ptt"
        case .widgets: ".push-type.widgets"
        case .controls: ".push-type.controls"
        case .mdm: nil
        }
    }

    /// Most bytes of the body.
    public var payloadBytes: Int { self == .voip ? 5120 : 4096 }

    /// Splits a topic into the bundle id and the suffix of a push type (the longest that matches). It works
    /// on bytes, because every push passes through it.
    static func split(_ topic: ArraySlice<UInt8>) -> (bundle: ArraySlice<UInt8>, suffix: String) {
        for (text, bytes) in suffixes
        where topic.count > bytes.count && topic.suffix(bytes.count).elementsEqual(bytes) {
            return (topic.dropLast(bytes.count), text)
        }
        return (topic, "")
    }

    private static let suffixes = Set(allCases.compactMap(\.topicSuffix)).subtracting([""])
        .sorted { $0.utf8.count > $1.utf8.count }
        .map { (text: $0, bytes: Array($0.utf8)) }

    private static let byName = Dictionary(
        uniqueKeysWithValues: allCases.map { (Array($0.rawValue.utf8), $0) })

    init?(_ name: ArraySlice<UInt8>) {
        // The two types that nearly every push has are recognised without a look-up.
        if name.elementsEqual("alert".utf8) {
            self = .alert
        } else if name.elementsEqual("background".utf8) {
            self = .background
        } else if let found = Self.byName[Array(name)] {
            self = found
        } else {
            return nil
        }
    }
}
