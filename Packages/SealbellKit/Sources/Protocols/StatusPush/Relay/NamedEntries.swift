package import PushModel

/// The registrations that notifications name, each once, with the notifications that name them.
package struct NamedEntries: Sendable {
    package private(set) var names: [RecordKey] = []
    /// For each name, the places of its notifications in order.
    package private(set) var places: [[Int]] = []

    package init(_ entries: [PushNotification], _ keys: StatusRecordNames) {
        var known: [Digest16: Int] = [:]
        for (place, entry) in entries.enumerated() {
            let name = keys.registration(of: entry.publicKey, installation: entry.installationID)
            // Half of a hash of 32 bytes: somebody who made two names with the same half would only hide
            // their own.
            let half = name.name.reveal { Digest16(UnsafeRawBufferPointer(rebasing: $0.prefix(16))) }
            if let index = half.flatMap({ known[$0] }) {
                places[index].append(place)
                continue
            }
            if let half { known[half] = names.count }
            names.append(name)
            places.append([place])
        }
    }
}
