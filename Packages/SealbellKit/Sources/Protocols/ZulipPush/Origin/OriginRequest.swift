public import PushModel
import WireFormats

/// The paths of an origin's door at which a phone is registered (§3, §14.1). All are POST with a form.
public enum OriginPath: String, Sendable, Hashable, CaseIterable {
    /// A device of v12 is made (§3.1).
    case addDevice = "/api/v1/register_client_device"
    /// A device of v12 is removed (§3.2).
    case removeDevice = "/api/v1/remove_client_device"
    /// A registration, in any profile (§3.3, §3.7, §14.4).
    case register = "/api/v1/mobile_push/register"
    /// A registration by account id is forgotten (§14.4).
    case forget = "/api/v1/mobile_push/forget"
    /// A test notification (§3.4).
    case test = "/api/v1/mobile_push/e2ee/test_notification"
    // Plaintext registrations, which get one refusal (§14.13).
    /// A plaintext token of APNs.
    case legacyAPNs = "/api/v1/users/me/apns_device_token"
    /// A plaintext token of FCM.
    case legacyFCM = "/api/v1/users/me/android_gcm_reg_id"

    /// Of a plaintext registration, which is also taken away by DELETE at the same path.
    public var isLegacy: Bool { self == .legacyAPNs || self == .legacyFCM }
}

/// What a client asks, well-formed.
public enum OriginCall: Sendable {
    /// ``OriginPath/addDevice``: another device of v12.
    case addDevice
    /// ``OriginPath/removeDevice``: this `device_id`.
    case removeDevice(Int64)
    /// Of v12.
    case registerDevice(OriginDeviceForm)
    /// Of v11 and of the specification's own profile.
    case registerAccount(OriginAccountForm)
    /// ``OriginPath/forget``: this `push_account_id`.
    case forget(Int64)
    /// For one device, or for all: ``ZulipRegistrations/targets(of:)``.
    case test(ZulipQueueItem.Subject?)
}

/// A client's call, read from its form.
public struct OriginRequest: Sendable {
    /// What is asked.
    public let call: OriginCall
    /// Parameters that the call does not know, at most 16.
    public let ignored: [String]

    /// Reads a form. Of a parameter that is there twice the last counts.
    ///
    /// - Parameter body: at most ``ZulipOriginLimits/formBodyBytes``.
    /// - Parameter isBot: the caller, whose credentials are good, is no person.
    /// - Parameter hasRelay: the server has a relay to register at.
    /// - Throws: in the order of §14.4: bot, no relay, missing parameters, their forms.
    public init(
        _ path: OriginPath, body: Secret, isBot: Bool = false, hasRelay: Bool = true
    ) throws(OriginRefusal) {
        if path == .legacyAPNs || path == .legacyFCM { throw OriginRefusal(.legacy) }
        if path == .register, isBot { throw OriginRefusal(.isBot) }
        if path == .register || path == .test, !hasRelay { throw OriginRefusal(.noRelay) }
        let form = try OriginFields.form(body)
        let known: [String]
        switch path {
        case .addDevice, .legacyAPNs, .legacyFCM: (call, known) = (.addDevice, [])
        case .removeDevice:
            (call, known) = (.removeDevice(try OriginFields.integer(form, "device_id")), ["device_id"])
        case .forget:
            (call, known) = (.forget(try OriginFields.integer(form, "push_account_id")), ["push_account_id"])
        case .test: (call, known) = (.test(try OriginFields.subject(form)), ["device_id", "push_account_id"])
        case .register: (call, known) = try OriginFields.registration(form)
        }
        ignored = form.unknown(known)
    }

    /// The body of the answer with status 200, once the step is committed.
    public func body(_ step: ZulipStep) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("result", "success")
        writer.member("msg", "")
        if let deviceID = step.deviceID { writer.member("device_id", deviceID) }
        if !ignored.isEmpty {
            writer.beginArray("ignored_parameters_unsupported")
            for name in ignored { writer.string(name) }
            writer.endArray()
        }
        writer.endObject()
        return writer.bytes
    }
}

extension ZulipRegistrations {
    /// Takes a client's call. The answer is a success with what the step says, once the step is committed.
    ///
    /// - Throws: what refuses it; nothing has changed then.
    public mutating func receive(
        _ call: OriginCall, now: UnixTime, using generator: inout some RandomNumberGenerator
    ) throws(OriginRefusal) -> ZulipStep {
        switch call {
        case .addDevice: return try addDevice(using: &generator)
        case .removeDevice(let id):
            guard devices[id] != nil else { throw OriginRefusal(.invalidDeviceID) }
            return removeDevice(id)
        case .registerDevice(let form): return try register(form, now: now, using: &generator)
        case .registerAccount(let form): return try register(form, now: now, using: &generator)
        case .forget(let id): return forget(id)
        case .test(let subject):
            _ = try targets(of: subject)
            return ZulipStep()
        }
    }

    /// For whom a test notification is to be sealed (§3.4).
    ///
    /// - Parameter subject: `nil`: all of the user's.
    /// - Throws: `.noActiveDevice`. The same is to be answered where the relay says of all that they are
    ///   dead.
    public func targets(of subject: ZulipQueueItem.Subject?) throws(OriginRefusal) -> [ZulipTarget] {
        let found: [ZulipTarget]
        switch subject {
        case nil: found = targets
        case .device(let id): found = devices[id]?.target.map { [$0] } ?? []
        case .account(let id): found = accounts[id].map { [$0.target].filter(\.isConfirmed) } ?? []
        }
        guard !found.isEmpty else { throw OriginRefusal(.noActiveDevice) }
        return found
    }
}
