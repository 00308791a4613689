/// Lists that are too long for one message.
enum MessageParting {
    /// Elements in order, grouped into as many as fit into a message: at least one group, which may be empty.
    /// An element that is too long by itself is left out: none of ours is, and among those that others caused
    /// only a report about a name that nobody registers could be.
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
