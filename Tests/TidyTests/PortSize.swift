import Foundation

extension Rules {
    static let portLimitRequirements = 7

    /// Protocols that may ask for more, and why. One that asks for seven at most must not stand here.
    static let largePorts: [String: String] = [
        "HostedProtocol": "All that the wiring asks of a protocol, which is one folder.",
        "HostedInstance": "All that the wiring asks of one instance; most of it has a default.",
        "PushDevice": "All that an app asks of a device, the same for every protocol.",
        "OriginControl": "One admin call each, of one book.",
        "HostedService": "All that the wiring asks of a push service, which is one folder.",
        "ServiceSettings": "All that the wiring asks of an app's keys for one service.",
        "ServiceMessage": "All that the model knows of a push service, which is one file.",
        "SteeredSimulator": "One kind of knob each, for one control endpoint."
    ]

    /// Protocols of more than `portLimitRequirements` functions, initialisers, subscripts and properties.
    /// What a protocol inherits, and its associated types, do not count.
    static func portSize(_ file: SwiftText) -> [Violation] {
        ports(file).compactMap { port in
            let isExcused = largePorts[port.name] != nil
            guard (port.requirements > portLimitRequirements) != isExcused else { return nil }
            return Violation(
                rule: "port size", path: file.path, line: port.line,
                text: "\(port.name): \(port.requirements) requirements" + (isExcused ? ", and excused" : ""))
        }
    }

    /// Name, line (from 1) and number of requirements of each protocol.
    static func ports(_ file: SwiftText) -> [(name: String, line: Int, requirements: Int)] {
        let opening = #/(?:^|\s)protocol\s+(\w+)/#
        let requirement =
            #/^\s*(?:(?:static|mutating|nonmutating|nonisolated)\s+)*(?:func|var|init|subscript)\b/#
        return file.places(of: "protocol ").compactMap { first, line in
            guard let match = line.firstMatch(of: opening) else { return nil }
            var (depth, count) = (0, 0)
            for index in first..<file.code.count {
                let text = file.code[index]
                if depth == 1, text.contains(requirement) { count += 1 }
                for character in text {
                    if character == "{" { depth += 1 }
                    if character == "}" { depth -= 1 }
                    // Its own last brace; a line in front of its first one has none.
                    if depth == 0, character == "}" { return (String(match.1), first + 1, count) }
                }
            }
            return nil
        }
    }
}
