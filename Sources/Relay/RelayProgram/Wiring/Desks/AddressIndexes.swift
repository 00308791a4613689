import PushModel

extension DeskInstances {
    /// Where registrations of an address would be found: over all instances, under every app id of the
    /// configuration, and however the address is spelled.
    ///
    /// - Parameter more: an app id that no app has any more.
    func indexes(
        ofAddress address: Secret, over configuration: RelayConfiguration, _ more: String? = nil
    ) -> [RecordKey] {
        var appIDs: [String?] = [nil]
        for app in configuration.apps {
            for settings in app.services { appIDs += settings.registeredAppIDs }
        }
        if let more { appIDs.append(more) }
        var indexes: [RecordKey] = []
        for spelled in Self.spellings(address) {
            for appID in appIDs {
                // Instances of one protocol may share an index.
                for index in self.indexes(ofAddress: spelled, appID: appID) {
                    Self.add(index, to: &indexes)
                }
            }
        }
        return indexes
    }
}
