/// How much of the store one server may take: what ``ZulipLimits`` says, unless a test says otherwise.
package struct ZulipBounds: Sendable {
    /// Realms of a server, reported or no longer.
    package var realms = ZulipLimits.realmsPerServer
    package var registrationsPerRealm = ZulipLimits.registrationsPerRealm
    package var registrationsPerServer = ZulipLimits.registrationsPerServer
    package var registrationBytesPerRealm = ZulipLimits.registrationBytesPerRealm
    package var registrationBytesPerServer = ZulipLimits.registrationBytesPerServer
    /// New registrations of a server after which the store counts anew.
    package var newPerCount = ZulipLimits.newRegistrationsPerCount

    package init() {}
}
