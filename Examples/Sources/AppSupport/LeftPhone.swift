import Foundation
import SealbellKit

/// What a phone has kept and a push for it, in two files: for a program that opens the push in a process of
/// its own, as an extension does.
public struct LeftPhone: Sendable {
    /// `kept` of a device.
    public let kept: Secret
    /// What the system delivered, as JSON.
    public let push: Secret

    public init(kept: Secret, push: Secret) { (self.kept, self.push) = (kept, push) }

    /// Reads `NAME.kept` and `NAME.push`.
    public init(_ name: String, in folder: URL) throws {
        kept = Secret(try Data(contentsOf: folder.appendingPathComponent("\(name).kept")))
        push = Secret(try Data(contentsOf: folder.appendingPathComponent("\(name).push")))
    }

    /// Writes both files, in place of those that were there.
    public func write(_ name: String, in folder: URL) throws {
        try kept.reveal { Data($0) }.write(to: folder.appendingPathComponent("\(name).kept"))
        try push.reveal { Data($0) }.write(to: folder.appendingPathComponent("\(name).push"))
    }

    /// Writes both files where the program was given a folder.
    public func writeIfWanted(_ name: String) throws {
        guard CommandLine.arguments.count > 1 else { return }
        try write(name, in: URL(fileURLWithPath: CommandLine.arguments[1]))
    }
}
