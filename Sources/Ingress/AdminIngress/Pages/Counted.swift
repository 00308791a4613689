/// A count with its noun, as a sentence has it: `1 push`, `3 pushes`. A verb may stand with the noun, where
/// it follows the number too: `1 push is`, `3 pushes are`.
///
/// - Parameters:
///   - one: the noun of one.
///   - many: that of several and of none; without it the noun takes an `s`.
package func counted(_ count: some BinaryInteger, _ one: String, _ many: String? = nil) -> String {
    "\(count) \(count == 1 ? one : many ?? one + "s")"
}
