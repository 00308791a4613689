package import PushModel
import WireFormats

/// The app that a service of an instance sends to. A single object, because each push takes it out of the
/// table.
package final class SessionApp: Sendable {
    package let name: ConfiguredName
    /// Its bundle id for APNs; `nil`: it has no APNs.
    package let bundle: String?
    /// What a phone shows if it cannot open the push: an `aps` object as JSON. `nil`:
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

    func isNamed(_ other: UnsafeRawBufferPointer) -> Bool {
        var text = name.text
        return text.withUTF8 { constantTimeEqual(UnsafeRawBufferPointer($0), other) }
    }
}

/// Which app each service of an instance sends to. A subscription names a service but no app (§3.1).
package struct SessionApps: Sendable {
    /// As deployed servers send it (§8.3).
    package static let standardAps = Array(
        (#"{"alert":{"title":"Session","body":"You've got a new message"},"badge":1,"sound":"default","#
            + #""mutable-content":1,"category":"SECRET"}"#).utf8)

    /// By the service's stored byte, 1 to 4: looked up for each push.
    private let apps: [SessionApp?]

    package init(_ apps: [SessionService: SessionApp]) {
        var places = [SessionApp?](repeating: nil, count: SessionService.allCases.count + 1)
        for (service, app) in apps where !service.isApple || app.bundle != nil {
            places[Int(service.stored)] = app
        }
        self.apps = places
    }

    package subscript(_ service: SessionService) -> SessionApp? { apps[Int(service.stored)] }

    /// The app of a subscription; `nil` if the service has another app now, or none.
    subscript(_ service: SessionService, _ name: UnsafeRawBufferPointer) -> SessionApp? {
        guard let app = self[service], app.isNamed(name) else { return nil }
        return app
    }
}
