import PushModel

/// Pigeons: all that the model knows of a push service which the relay does not have. This file, and an
/// element of a list, are what a further service costs there.
extension PushService {
    static let pigeon = PushService(named: "pigeon")
}

extension PushServices {
    static let withPigeons = PushServices(standard.messages + [PigeonMessage.self])
}

struct PigeonMessage: Sendable {
    var loft: Secret
    var note: Secret
    /// Notes that the pigeon carries beside it.
    var seals: UInt8 = 0
    /// The authority to which it flies, where there are several.
    var coast: String?
}

extension PigeonMessage: ServiceMessage {
    static let service = PushService.pigeon
    static let reasons: [Reason] = [.storm, .noSuchLoft, .otherCoast]
    static let storedTags: [UInt8] = [200]

    var address: Secret { loft }
    var bytes: Int { loft.count + note.count }
    var authority: String? { coast }
    var storedSize: Int {
        2 * StoredSize.byte + StoredSize.of(loft) + StoredSize.of(note) + StoredSize.of(coast ?? "")
    }

    func write(to writer: inout StoredWriter) {
        writer.put(Self.storedTags[0])
        writer.put(seals)
        writer.put(loft)
        writer.put(note)
        writer.put(coast ?? "")
    }

    init?(tag: UInt8, from reader: inout StoredReader) {
        guard let seals = reader.byte(), let loft = reader.secret(), let note = reader.secret(),
            let coast = reader.text()
        else { return nil }
        self.init(loft: loft, note: note, seals: seals, coast: coast.isEmpty ? nil : coast)
    }
}

extension Reason {
    static let storm = Reason("STORM", .asksForTime)
    static let noSuchLoft = Reason("NO_SUCH_LOFT", [.blamesTarget, .provesCredential])
    static let otherCoast = Reason("OTHER_COAST", .mayBeElsewhere)
}

/// One app of an instance has the pigeons. Where a loft stands is found out: the sandbox first, to be unlike
/// Apple.
struct PigeonOutlet: ServiceOutlet {
    static let service = PushService.pigeon
    var environment = EnvironmentPolicy.learned(first: .sandbox, other: .production)

    static func choose(for message: ProviderMessage, among apps: [AppOutlet<PigeonOutlet>]) -> Int? {
        apps.indices.first
    }
}
