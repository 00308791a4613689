public import PushModel
public import SealbellKit

/// One account of Status on one phone: registers it at push notification servers, advertises them in the
/// account's contact code, and opens pushes.
///
/// Beside the verbs of ``PushDevice`` it wants the user's settings at each start (``apply(_:)``), and for
/// opening the ids of chats (``chats``). Its calls are `follow`, which stands, and `publish`; what arrives on
/// the topics that it follows are ``CallAnswer/waku(_:)`` to the `follow`. Do both on a queue of their own:
/// the first contact code costs a key of PBKDF2 (65,356 rounds, some 10 ms), and with
/// ``StatusSettings/contactsOnly`` each registration agrees on a key with every contact.
///
/// Spec: "Push notification server", §11.
public struct StatusDevice: PushDevice {
    /// Ids of the account's chats, of which a push names one by its hash; not kept. At most
    /// ``StatusLimits/knownChats`` of them are looked through.
    public var chats: [Secret] = []

    let setup: StatusSetup
    package var installation: StatusInstallation
    var inbox: StatusInbox
    /// Whether ``use(token:)`` was called in this run.
    var isTold = false
    /// The `follow` that stands, or is on its way.
    private var followID: UInt64?
    /// What is being published, the oldest first.
    private var underWay: [(id: UInt64, matter: StatusInstallation.Matter)] = []
    private var nextID: UInt64
    /// The node did not do what it was asked; nothing is asked of it before.
    private var restUntil: UnixTime?
    /// What ``status(at:)`` said last, and since when.
    var (state, since): (DeviceStatus.State, UnixTime?) = (.none, nil)

    /// The account after ``kept``, or with a new installation.
    ///
    /// - Parameter kept: at most ``StatusLimits/deviceRowBytes``.
    /// - Throws: `.malformedKept` for what ``kept`` has not written, also when it was of another account or
    ///   of another installation than `setup` names.
    public init(
        _ setup: StatusSetup, keeping kept: Secret?, using generator: inout some RandomNumberGenerator
    ) throws(DeviceError) {
        self.setup = setup
        // From a place of its own, so that a call of an earlier run is none of this one's.
        nextID = UInt64.random(in: 0...UInt64.max >> 1, using: &generator)
        do throws(StatusError) {
            if let kept {
                let rows = try Self.rows(kept)
                installation = try StatusInstallation(rows: Array(rows[2...]), key: setup.key)
                inbox = try StatusInbox(row: rows[1])
                guard let (state, since) = Self.head(rows[0], installation, setup) else {
                    throw StatusError(.malformedRow)
                }
                (self.state, self.since) = (state, since)
            } else {
                if let id = setup.installationID {
                    installation = try StatusInstallation(
                        key: setup.key, installationID: id, using: &generator)
                } else {
                    installation = StatusInstallation(key: setup.key, using: &generator)
                }
                inbox = StatusInbox(using: &generator)
            }
        } catch { throw DeviceError(kept == nil ? .malformedSetup : .malformedKept, error.codeText) }
        installation.registrationTopic = setup.registrationTopic
        do throws(StatusError) { try installation.use(servers: setup.points) } catch {
            throw DeviceError(.malformedSetup, error.codeText)
        }
    }

    // MARK: what the user wants

    /// The token, and with it that the user wants pushes: without the user's asking there is none to give.
    ///
    /// - Parameter token: `nil`: no pushes any more, or a logout; every server is told to forget the account,
    ///   and the contact code names none of them any more. Keep the key until ``isGone``.
    /// - Throws: `.wrongService` for an APNs token without ``StatusSetup/bundleID``.
    public mutating func use(token: DeviceToken?) throws(DeviceError) {
        guard let token else {
            isTold = true
            return installation.switchOff()
        }
        installation.use(try own(token))
        installation.switchOn()
        isTold = true
    }

    private func own(_ token: DeviceToken) throws(DeviceError) -> StatusDeviceToken {
        do throws(StatusError) {
            switch token.service {
            case .fcm: return try .fcm(token.text)
            case .apns:
                guard let bundleID = setup.bundleID else { throw StatusError(.unsupportedTokenType) }
                return try .apns(token.text, topic: bundleID)
            }
        } catch {
            let isOfService = error.code == .unsupportedTokenType
            throw DeviceError(isOfService ? .wrongService : .malformedToken, error.codeText)
        }
    }

    /// The settings as they are now: at each start, because they are not kept, and after each change, which
    /// all servers are told. Nothing is registered before.
    ///
    /// - Throws: `.tooMany` when a registration with them would be longer than nodes pass on
    ///   (``StatusLimits/deviceEntries``); nothing has changed then.
    public mutating func apply(_ settings: StatusSettings) throws(DeviceError) {
        do throws(StatusError) { try installation.apply(settings) } catch {
            throw DeviceError(.tooMany, error.codeText)
        }
    }

    /// Tries again at once what was given up or refused, because somebody asks for it.
    public mutating func retry() {
        installation.retry()
        restUntil = nil
    }

    // MARK: calls

    /// Calls to make now: a `follow` once a run, registrations at servers that do not have the newest
    /// version, and the contact code when it has changed or is a day old.
    ///
    /// A server that does not answer is told again after 15 s · n · 2^n, twelve times at most; a node that
    /// does not publish, or no longer follows, is asked again after 15 s, and that counts against no server.
    public mutating func due(
        at now: UnixTime, using generator: inout some RandomNumberGenerator
    ) -> [Call] {
        guard isTold, !isResting(now) else { return [] }
        restUntil = nil
        var calls: [Call] = []
        if wantsToFollow, followID == nil {
            let call = Call(id: id(), .follow(topics: topics), isStanding: true)
            followID = call.id
            calls.append(call)
        }
        for (message, matter) in installation.outgoing(now, &generator) {
            let call = Call(id: id(), .publish(message))
            underWay.append((call.id, matter))
            calls.append(call)
        }
        // Only an app that answers nothing gets there.
        underWay.removeFirst(max(0, underWay.count - StatusLimits.deviceCalls))
        mark(now)
        return calls
    }

    /// Takes what came of a call: `.taken`, of a `follow` also each message that arrives (`.waku`). Anything
    /// else is `.none`; of a `follow` it says that nothing arrives any more.
    public mutating func answered(
        _ answer: CallAnswer, to call: Call, at now: UnixTime,
        using generator: inout some RandomNumberGenerator
    ) {
        if call.id == followID {
            switch answer {
            case .taken: break
            case .waku(let message): heard(message, at: now)
            case .http, .group, .events, .relays, .none:
                followID = nil
                rest(now)
            }
            return
        }
        guard let place = underWay.firstIndex(where: { $0.id == call.id }) else { return }
        let matter = underWay.remove(at: place).matter
        if case .taken = answer { return mark(now) }
        rest(now)
        switch matter {
        case .registration(let server, let request): installation.unsent(to: server, request)
        case .advertisement: installation.advertises = true
        }
    }

    /// Takes a message of one of ``topics``.
    ///
    /// - Returns: what it meant; `nil`: nothing has changed.
    @discardableResult
    package mutating func heard(_ message: WakuMessage, at now: UnixTime) -> StatusInstallation.Event? {
        let event = installation.receive(message, now: now)
        mark(now)
        return event
    }

    /// Content topics on which answers of servers and the account's own contact code arrive: two.
    public var topics: [String] { installation.topics }

    /// When to call ``due(at:using:)`` without anything having happened.
    public var nextDue: UnixTime? {
        guard isTold else { return nil }
        let isToFollow = wantsToFollow && followID == nil
        guard let next = isToFollow ? .distantPast : installation.nextDeadline else { return nil }
        return restUntil.map { max($0, next) } ?? next
    }

    /// Whether no server has the account any more, as far as one is still asked, and its contact code names
    /// none.
    public var isGone: Bool {
        !installation.isReceiving && installation.isForgotten && !isAdvertising
    }

    // MARK: parts

    /// Whether a contact code is to be published, or may not have been.
    var isAdvertising: Bool {
        installation.advertises
            || underWay.contains { if case .advertisement = $0.matter { true } else { false } }
    }

    private var wantsToFollow: Bool {
        installation.isReceiving ? installation.isReady : !installation.isForgotten
    }

    private mutating func id() -> UInt64 {
        nextID &+= 1
        return nextID
    }

    private mutating func rest(_ now: UnixTime) {
        restUntil = now + StatusLimits.registrationPause
        mark(now)
    }

    /// A clock that was set back must not put it off.
    private func isResting(_ now: UnixTime) -> Bool {
        guard let restUntil else { return false }
        return restUntil > now && restUntil.since(now) <= StatusLimits.registrationPause
    }
}
