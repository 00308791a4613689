import Foundation
import PushModel

/// What is measured of Status.
package struct StatusBenchPlan: Sendable {
    /// Where a relay can be started.
    package struct Place: Sendable {
        /// The `sealbell` that is run: absolute path.
        package var executable: String
        /// An empty directory of the measurement's own.
        package var directory: String

        package init(executable: String, directory: String) {
            (self.executable, self.directory) = (executable, directory)
        }

        /// A directory in it.
        ///
        /// - Throws: `.fileFault`.
        func makeDirectory(_ name: String) throws(BenchError) -> String {
            let path = "\(directory)/\(name)"
            do {
                try FileManager.default.createDirectory(
                    atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            } catch {
                throw BenchError(.fileFault)
            }
            return path
        }
    }

    /// 3 to 1,000.
    package var rounds: Int
    /// Requests in a round: 10 to 10,000.
    package var requests = 200
    /// People who are registered at a relay of its own process: up to a million.
    package var people = 100_000
    /// Messages on their topics, of either kind: 10 to 100,000, and a tenth less than there are people.
    package var messages = 10_000
    /// Where that relay is started; `nil`: it is left out.
    package var place: Place?

    package init(rounds: Int) { self.rounds = rounds }

    /// People who are asked about again and again; the others are asked about once.
    var samePeople: Int { messages / 10 }

    var isSound: Bool {
        Rounds.range.contains(rounds) && (10...10_000).contains(requests)
            && (10...100_000).contains(messages)
            && (messages + samePeople...1_000_000).contains(people)
    }
}
