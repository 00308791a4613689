public import PushModel
public import SealbellKit
import WireFormats

extension StatusDevice {
    /// Opens a push, in either form of data: that of deployed servers (`encryptedMessage`, `chatId`,
    /// `publicKey`), or that of the specification (`message`, `chat_id`, `installation_ids`).
    ///
    /// - Returns: `.show`: the message is here. `.fetch`: it is not in the push, or was sealed in a way that
    ///   the chat alone knows; get the chat's new messages from the store, or all of the account's where
    ///   ``StatusContent/chat`` is `nil`, and show those that are not on the phone yet. `.ignore`: it was
    ///   stored before, or the account wants no pushes.
    /// - Throws: `.foreign` for what is not of this protocol (detail `foreignPush`), or for another account.
    public func open(
        _ delivered: Delivered, at now: UnixTime
    ) throws(DeviceError) -> Opened<StatusContent> {
        let data: DeliveredData
        do throws(StatusError) { data = try DeliveredData(delivered: delivered.json) } catch {
            throw DeviceError(.foreign, error.codeText)
        }
        let known = [installation.installationID: chats]
        switch inbox.open(data, accounts: [installation], chats: known) {
        case .show(let content): return .show(content)
        case .fetch(let content): return .fetch(content)
        case .ignore(.repeated): return .ignore(.repeated)
        case .ignore(.switchedOff): return .ignore(.switchedOff)
        case .ignore(.foreignAccount): throw DeviceError(.foreign)
        }
    }

    /// The message is stored: repeats of its push are ignored from then on. The last
    /// ``StatusLimits/rememberedMessages`` are known.
    public mutating func stored(_ content: StatusContent) { inbox.remember(content) }

    // MARK: settings page

    /// How the account stands with each of its servers, and with those it has left that still have it.
    public var servers: [StatusServer] {
        installation.servers.compactMap { one in
            let place = setup.points.firstIndex(of: one.server)
            // Its own 33 bytes are a key always.
            let named = place.map { setup.servers[$0] }
            let key = named ?? (try? RelayKey(text: Hex.encode(one.server.compressed)))
            return key.map { StatusServer(key: $0, condition: one.condition) }
        }
    }

    /// How it stands with the servers: active when one of them has the newest registration; failed when each
    /// refuses it, or has not answered for days, and is not asked again before ``retry()`` or a change.
    /// `detail` is then `malformed`, `unsupportedToken`, `versionMismatch` or `givenUp`.
    public func status(at now: UnixTime) -> DeviceStatus {
        let state = presentState
        let age = since.map { now.since($0) }
        let isFresh = state != self.state || age.map { $0 >= .zero && $0 < StatusLimits.quietTime } ?? true
        let isQuiet = state == .pending && isFresh
        let advice: DeviceStatus.Advice =
            switch state {
            case .none: isTold ? .none : .giveToken
            case .pending: isQuiet ? .none : .retrying
            case .failed: .tellAdmin
            case .active: .none
            }
        return DeviceStatus(
            state: state, since: state == self.state ? since : now, detail: detail, isQuiet: isQuiet,
            advice: advice)
    }

    private var detail: String? {
        guard presentState == .failed else { return nil }
        return installation.standings.first { $0.isListed && $0.halt != nil }?.halt?.rawValue ?? "givenUp"
    }

    private var presentState: DeviceStatus.State {
        guard installation.isReceiving else { return isGone ? .none : .pending }
        let listed = installation.standings.filter { $0.isListed && $0.target > 0 }
        if listed.isEmpty { return .none }
        if listed.contains(where: { $0.goal == .registered && $0.isLevel }) { return .active }
        return listed.allSatisfy { $0.halt != nil || $0.isGivenUp } ? .failed : .pending
    }

    /// Notes since when it is as it is.
    mutating func mark(_ now: UnixTime) {
        let present = presentState
        guard present != state else { return }
        (state, since) = (present, now)
    }
}

/// One push notification server of an account.
public struct StatusServer: Sendable, Hashable {
    /// How the account stands with it.
    public enum Condition: String, Sendable, Hashable, CaseIterable {
        /// It has the newest registration.
        case registered
        /// It has forgotten the account, or was never told of it.
        case unregistered
        /// It has not answered yet, or is told again later.
        case waiting
        /// It has not answered for days; ``StatusDevice/retry()`` asks again.
        case givenUp
        /// It refuses what it is told, until something changes.
        case refused
    }

    /// As ``StatusSetup/servers`` named it; of one that was left, the compressed point.
    public let key: RelayKey
    /// How the account stands with it.
    public let condition: Condition
}
