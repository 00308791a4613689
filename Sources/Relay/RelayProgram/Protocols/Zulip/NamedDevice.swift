import WireFormats
import ZulipPush

extension DeviceName {
    /// As a server names a device, in a call or on a command line.
    ///
    /// - Returns: `nil` unless exactly one of the two is given, and is one.
    init?(tokenID: String?, number: String?) {
        let name: DeviceName? =
            switch (tokenID, number) {
            case (let text?, nil): TokenID(text).map { .token($0) }
            case (nil, let text?): CanonicalInteger.read(Array(text.utf8)).map { .number($0) }
            default: nil
            }
        guard let name else { return nil }
        self = name
    }
}
