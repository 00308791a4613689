/// Engines that several processes may share.
package enum SharedEngine: String, CaseIterable, Sendable {
    case memory, postgres
}
