import PushModel
import WireFormats

/// The entries of one notifications call (§5.5), in the order in which they were sent.
package struct NotificationBatch: Sendable {
    package let entries: [NotificationEntry]

    init(parsing body: UnsafeRawBufferPointer, isJSON: Bool) throws(NextcloudError) {
        entries = []
    }
}

package struct NotificationEntry: Sendable {}
