extension Hosting {
    /// What `sealbell` hosts. These two lists, the folders below `Protocols` and `Services`, and the targets
    /// and model files of each are the only places that name a protocol or a push service.
    static let standard = Hosting(
        protocols: [
            ZulipProtocol.self, MarmotProtocol.self, NextcloudProtocol.self, SessionProtocol.self,
            StatusProtocol.self, OriginProtocol.self
        ],
        services: [APNsService.self, FCMService.self],
        plannedProtocols: ["gorush"],
        plannedServices: ["web_push", "huawei"])
}
