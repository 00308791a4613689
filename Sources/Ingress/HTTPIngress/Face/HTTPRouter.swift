import PushModel

/// Which face answers which path of one listener. Immutable; a reload installs another.
package struct HTTPRouter: Sendable {
    struct Target: Sendable {
        /// Index into ``faces``.
        let face: Int
        let bodyLimitBytes: Int
        let tag: Int
        let takesLeadingSlashes: Bool
        let takesRepeatedSlashes: Bool
    }

    package let faces: [any HTTPFace]
    private var exact: [String: Target] = [:]
    /// Longest first.
    private var prefixes: [(path: String, target: Target)] = []

    /// - Throws: `.routeClash` when two faces could be meant by one path; it names both.
    package init(_ faces: [any HTTPFace]) throws(IngressError) {
        self.faces = faces
        for (index, face) in faces.enumerated() {
            for route in face.routes {
                let target = Target(
                    face: index, bodyLimitBytes: route.bodyLimitBytes, tag: route.tag,
                    takesLeadingSlashes: route.takesLeadingSlashes,
                    takesRepeatedSlashes: route.takesRepeatedSlashes)
                try add(route.pattern, target, of: face.name)
            }
        }
        prefixes.sort { $0.path.utf8.count > $1.path.utf8.count }
    }

    func match(_ path: String) -> Target? {
        if let target = exact[path] { return target }
        // An exact path that is written with more slashes comes before any prefix of it.
        if path.contains("//"), let target = exact[PathSlashes.single(path)], target.takesRepeatedSlashes {
            return target
        }
        if let target = lookUp(path) { return target }
        // Once more with one leading slash, for the routes that say so alone.
        guard path.utf8.starts(with: [0x2F, 0x2F]) else { return nil }
        return lookUp("/" + path.drop { $0 == "/" }).flatMap { $0.takesLeadingSlashes ? $0 : nil }
    }

    private func lookUp(_ path: String) -> Target? {
        if let target = exact[path] { return target }
        for entry in prefixes where path.utf8.starts(with: entry.path.utf8) { return entry.target }
        return nil
    }

    /// Within one face a path may lie below a prefix of the same face; between two faces it may not.
    private mutating func add(
        _ pattern: HTTPRoute.Pattern, _ target: Target, of name: ConfiguredName
    ) throws(IngressError) {
        var rival: Target?
        switch pattern {
        case .exact(let path):
            rival =
                exact.updateValue(target, forKey: path)
                ?? prefixes.first { $0.target.face != target.face && path.utf8.starts(with: $0.path.utf8) }?
                .target
        case .prefix(let path):
            rival =
                prefixes.first { other in
                    other.path == path
                        || other.target.face != target.face
                            && (path.utf8.starts(with: other.path.utf8)
                                || other.path.utf8.starts(with: path.utf8))
                }?.target
                ?? exact.first { $0.value.face != target.face && $0.key.utf8.starts(with: path.utf8) }?.value
            prefixes.append((path, target))
        }
        if let rival { throw IngressError(.routeClash, [faces[rival.face].name, name]) }
    }
}

/// Slashes of a path.
package enum PathSlashes {
    /// The path with one slash where it has several in a row.
    package static func single(_ path: String) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(path.utf8.count)
        for byte in path.utf8 where byte != 0x2F || bytes.last != 0x2F { bytes.append(byte) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
