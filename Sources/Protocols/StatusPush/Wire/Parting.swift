/// Lists that are longer than one message carries.
enum Parting {
    /// Elements in their order, as many together as a message has room for: at least one group, which may be
    /// empty. An element that is longer by itself is left out: nothing of ours is, and of what others made a
    /// report of a name that nobody registers.
    static func parts<Element: StatusMessage>(
        _ elements: [Element], within bytes: Int = StatusLimits.responseBytes
    ) -> [[Element]] {
        var (parts, part, room) = ([[Element]](), [Element](), bytes)
        for element in elements {
            let size = FieldRoom.element(element)
            guard size <= bytes else { continue }
            if size > room {
                parts.append(part)
                (part, room) = ([], bytes)
            }
            part.append(element)
            room -= size
        }
        return parts + [part]
    }
}
