// guide: begin
import SealbellKit

/// A device at work: the same for every protocol. An actor, because answers to standing calls come at any
/// time.
public actor Phone<Device: PushDevice> {
    /// Ask it for its status, and let it open what arrives.
    public private(set) var device: Device
    private let save: @Sendable (Secret) -> Void
    private let send: @Sendable (Call) async -> CallAnswer

    /// - Parameter save: into the keychain, out of backups.
    /// - Parameter send: makes a call. One that stands begins to listen, and is answered `.taken`.
    public init(
        _ device: Device, save: @escaping @Sendable (Secret) -> Void,
        send: @escaping @Sendable (Call) async -> CallAnswer
    ) {
        (self.device, self.save, self.send) = (device, save, send)
    }

    /// A new token, a setting, or an answer to a standing call. Let it `work()` behind that.
    public func change<Result: Sendable>(
        _ body: @Sendable (inout Device) throws -> Result
    ) rethrows -> Result {
        defer { save(device.kept) }
        return try body(&device)
    }

    /// At each start, at `device.nextDue`, and after each change.
    public func work() async {
        var calls = device.due(at: now())
        while !calls.isEmpty {
            // Before anything leaves: what was told and then lost would be told twice.
            save(device.kept)
            for call in calls {
                let answer = await send(call)
                device.answered(answer, to: call, at: now())
            }
            save(device.kept)
            calls = device.due(at: now())
        }
    }
}
// guide: end
