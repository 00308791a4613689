import AdminIngress

/// The server half: an origin with users of its own, which owes their notifications to a relay.
enum OriginProtocol: HostedProtocol {
    static let word = "origin"
    static let section: String? = "origin"
    static let keys = OriginSection.keys

    static func lack(_ settings: any InstanceSettings, beside others: [InstanceConfiguration]) -> String? {
        guard let section = settings as? OriginSection, section.relay == nil,
            !others.contains(where: { $0.zulip != nil })
        else { return nil }
        return "There is neither origin.relay nor a Zulip instance here: phones of Zulip's clients cannot "
            + "register. Name a relay, or add an instance with protocol: zulip."
    }

    static func read(_ instance: InstanceReader) -> OriginSection? { instance.origin() }

    static func host(
        _ settings: OriginSection, _ making: InstanceMaking
    ) throws(CommandFailure) -> any HostedInstance {
        if let house = (making.old as? OriginInstance)?.house, house.settings == settings {
            try house.readFiles()
            return OriginInstance(house)
        }
        return OriginInstance(try OriginHouse(making.name, settings, on: making.context))
    }

    static func calls(_ instances: DeskInstances) -> [AdminCall] { OriginDesk(instances).calls }
}
