/// Bounds of what all protocols share, each with its reason. What one protocol bounds besides is in its own
/// `Limits`.
public enum KitLimits {
    /// Bytes of an APNs device token. Apple's have 32 today, and its documentation promises no length.
    public static let apnsTokenBytes = 1...100
    /// Characters of an FCM registration token. Google's have some 160 today, and may have up to 4,096 bytes.
    public static let fcmTokenBytes = 1...4_096
    /// What a push service hands to an app, in bytes of JSON: 4 KB of payload, escaped where it is text
    /// within text, and what the system adds.
    public static let deliveredBytes = 64 << 10
    /// Objects and arrays within each other in what was handed over: 8 levels.
    public static let deliveredDepth = 8
    /// How far in a protocol's members are looked for: JSON in FCM's `message` in its `data`, or in a text:
    /// 4 places.
    package static let deliveredPlaces = 4
    /// How long an app waits for the answer to a call, as a rule: 30 seconds.
    public static let patience = Duration.seconds(30)
    /// The same for a call that the server answers when something happens, within a minute as a rule.
    public static let longPatience = Duration.seconds(90)
}
