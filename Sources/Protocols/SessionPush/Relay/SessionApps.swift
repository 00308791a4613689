package import PushModel
import WireFormats

/// The app that a service of an instance sends to.
package struct SessionApp: Sendable {
    package let name: ConfiguredName
    /// Its bundle id for APNs; `nil`: it has no APNs.
    package let bundle: String?
    /// What a phone shows that cannot open what arrived: an `aps` object as JSON. `nil`:
    /// ``SessionApps/standardAps``.
    package let aps: [UInt8]?
    /// For APNs.
    let envelope: Envelope

    package init(name: ConfiguredName, bundle: String?, aps: [UInt8]? = nil) {
        self.name = name
        self.bundle = bundle
        self.aps = aps
        envelope = .apple(aps ?? SessionApps.standardAps)
    }
}

/// Which app each service of an instance sends to. A subscription names a service and no app (§3.1).
package struct SessionApps: Sendable {
    /// As deployed servers send it (§8.3).
    package static let standardAps = Array(
        (#"{"alert":{"title":"Session","body":"You've got a new message"},"badge":1,"sound":"default","#
            + #""mutable-content":1,"category":"SECRET"}"#).utf8)

    private let apps: [SessionService: SessionApp]

    package init(_ apps: [SessionService: SessionApp]) {
        self.apps = apps.filter { service, app in !service.isApple || app.bundle != nil }
    }

    package subscript(_ service: SessionService) -> SessionApp? { apps[service] }

    /// The app of a subscription; `nil` where the service has another app now, or none.
    subscript(_ service: SessionService, _ name: UnsafeRawBufferPointer) -> SessionApp? {
        guard let app = apps[service], app.name.text.utf8.elementsEqual(name) else { return nil }
        return app
    }
}
