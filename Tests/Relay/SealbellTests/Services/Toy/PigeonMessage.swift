import PushModel

/// Pigeons: what the model knows of a push service that the relay does not have. In a service of its own this
/// file stands in `Packages/SealbellKit/Sources/Foundations/PushModel/Services/`.
extension PushService {
    static let pigeon = PushService(named: "pigeon")
}

struct PigeonMessage: Sendable {
    var loft: Secret
    var note: Secret
}

extension PigeonMessage: ServiceMessage {
    static let service = PushService.pigeon
    static let reasons: [Reason] = [.noSuchLoft, .wrongRing]
    static let storedTags: [UInt8] = [200]

    var address: Secret { loft }
    var bytes: Int { loft.count + note.count }
    var storedSize: Int { StoredSize.byte + StoredSize.of(loft) + StoredSize.of(note) }

    func write(to writer: inout StoredWriter) {
        writer.put(Self.storedTags[0])
        writer.put(loft)
        writer.put(note)
    }

    init?(tag: UInt8, from reader: inout StoredReader) {
        guard let loft = reader.secret(), let note = reader.secret() else { return nil }
        self.init(loft: loft, note: note)
    }
}

extension Reason {
    static let noSuchLoft = Reason("NO_SUCH_LOFT", [.blamesTarget, .provesCredential])
    static let wrongRing = Reason("WRONG_RING")
}

/// The first app of an instance that has pigeons sends them.
struct PigeonOutlet: ServiceOutlet {
    static let service = PushService.pigeon
    let environment = EnvironmentPolicy.fixed(.production)

    static func choose(for message: ProviderMessage, among apps: [AppOutlet<PigeonOutlet>]) -> Int? {
        apps.indices.first
    }
}
