public import PushModel
public import SealbellKit

extension NextcloudDevice {
    /// What is to be done now: one call at a time. In each run the server is asked what it can do before it
    /// is told anything.
    public mutating func due(
        at now: UnixTime, using generator: inout some RandomNumberGenerator
    ) -> [Call] {
        if let open = underWay {
            guard Self.isOver(open.since, NextcloudLimits.callDeadline, now) else { return [] }
            // Nobody will bring its answer any more.
            underWay = nil
            routine.stop()
        }
        guard let (kind, call) = next(now) else { return [] }
        let id = UInt64.random(in: 0...UInt64(Int64.max), using: &generator)
        underWay = UnderWay(id: id, kind: kind, since: now)
        return [Call(id: id, .http(call))]
    }

    private mutating func next(_ now: UnixTime) -> (UnderWay.Kind, HTTPCall)? {
        if leaving != nil { return nextToLeave(now) }
        if let call = following {
            following = nil
            return (.registration, call)
        }
        guard let token, isFree(notBefore, now), isFree(restsUntil, now), routine.isDue(token, now: now)
        else { return nil }
        if routine.registration?.completedAt == nil, !isPending { changedAt = now }
        guard let server else { return (.capabilities, routine.capabilities()) }
        do throws(NextcloudError) {
            guard case .call(let call) = try routine.register(token, at: server, .repair, now: now) else {
                return nil
            }
            isAsked = true
            return (.registration, call)
        } catch {
            refuse(error.code, now)
            return nil
        }
    }

    private mutating func nextToLeave(_ now: UnixTime) -> (UnderWay.Kind, HTTPCall)? {
        guard var work = leaving else { return nil }
        let since = work.since ?? now
        work.since = since
        leaving = work
        let isTooOld = now.since(since) >= NextcloudLimits.unregistrationLife
        guard !isTooOld, let call = work.call(routine.registration) else {
            forget(now)
            return nil
        }
        return isFree(work.notBefore, now) ? (.leaving, call) : nil
    }

    /// Takes what came back: the server's word, then the relay's.
    public mutating func answered(
        _ answer: CallAnswer, to call: Call, at now: UnixTime,
        using generator: inout some RandomNumberGenerator
    ) {
        guard let open = underWay, open.id == call.id else { return }
        underWay = nil
        switch open.kind {
        case .capabilities: settleCapabilities(answer, now, using: &generator)
        case .registration: take(routine.settle(answer, now: now, using: &generator), answer, now)
        case .leaving:
            // The user may have logged in again meanwhile.
            guard leaving != nil else { return routine.distrust() }
            let isOver = leaving?.settle(answer, now: now, using: &generator) ?? true
            // A relay that was never told knows nothing.
            if isOver || leaving?.call(routine.registration) == nil { forget(now) }
        }
    }

    private mutating func settleCapabilities(
        _ answer: CallAnswer, _ now: UnixTime, using generator: inout some RandomNumberGenerator
    ) {
        trouble = nil
        guard answer.status == 200 else {
            if answer.mayPass {
                notBefore = routine.postpone(answer, now: now, using: &generator)
            } else {
                refuse(answer.status == 401 ? .notLoggedIn : .refusedByServer, now)
            }
            return
        }
        do throws(NextcloudError) {
            let said = try NextcloudCapabilities(answer.body)
            guard said.takesDevices else { return refuse(.unsupportedServer, now) }
            server = said
            notBefore = nil
        } catch { refuse(error.code, now) }
    }

    private mutating func take(
        _ step: NextcloudRoutine.Step, _ answer: CallAnswer, _ now: UnixTime
    ) {
        trouble = nil
        switch step {
        case .call(let call):
            isAsked = false
            following = call
        case .done:
            (notBefore, restsUntil, changedAt) = (nil, nil, now)
        case .later(let time):
            (notBefore, trouble) = (time, routine.trouble?.code)
        case .failed(let error): refuse(error.code, now)
        }
        guard isUnwanted else { return }
        // What was under way at the logout: from here on it is known what is to be taken back.
        routine.stop()
        following = nil
        guard leaving == nil, routine.registration != nil else { return }
        leaving = Unregistration(account: login.account, app: login.app)
    }

    private mutating func refuse(_ code: NextcloudError.Code, _ now: UnixTime) {
        (trouble, changedAt, notBefore, server) = (code, now, nil, nil)
        restsUntil = now + NextcloudLimits.registrationRepeat
    }

    private mutating func forget(_ now: UnixTime) {
        routine.forget()
        (leaving, isAsked, trouble, changedAt) = (nil, false, nil, now)
    }

    /// Whether nothing is waited for. A time further off than its longest span is one of a clock that was set
    /// back since.
    private func isFree(_ time: UnixTime?, _ now: UnixTime) -> Bool {
        guard let time, time > now else { return true }
        return time.since(now) > NextcloudLimits.registrationRepeat
    }

    private static func isOver(_ since: UnixTime, _ span: Duration, _ now: UnixTime) -> Bool {
        let age = now.since(since)
        return age >= span || age < .zero
    }

    // MARK: how it stands

    /// When to ask ``due(at:)`` without anything having happened: when the answer to a call no longer comes,
    /// after a failure, and a day after the last registration.
    public var nextDue: UnixTime? {
        if let underWay { return underWay.since + NextcloudLimits.callDeadline }
        if let leaving { return leaving.notBefore ?? .distantPast }
        if following != nil { return .distantPast }
        guard let token else { return nil }
        // One of them may have passed already, and the other one not.
        if let wait = [restsUntil, notBefore].compactMap(\.self).max() { return wait }
        guard let completedAt = routine.registration?.completedAt,
            !routine.isDue(token, now: completedAt)
        else { return .distantPast }
        return completedAt + NextcloudLimits.registrationRepeat
    }

    private var isPending: Bool { state == .pending }

    private var state: DeviceStatus.State {
        if leaving != nil { return .pending }
        if routine.registration?.completedAt != nil { return .active }
        if trouble != nil, trouble != .instanceUnreachable { return .failed }
        let isBegun = routine.registration != nil || isAsked || underWay != nil || notBefore != nil
        return isBegun ? .pending : .none
    }

    /// How this login stands at server and relay. Its `detail` is a code of docs/errors.md.
    public func status(at now: UnixTime) -> DeviceStatus {
        let state = state
        let advice: DeviceStatus.Advice =
            switch trouble {
            case _ where leaving != nil: .none
            case .notLoggedIn?, .invalidSessionToken?: .logInAgain
            case .unsupportedServer?: .unsupported
            case .instanceUnreachable?: .retrying
            case _?: .tellAdmin
            case nil where state == .active: .none
            case nil where state == .none: token == nil && !isUnwanted ? .giveToken : .none
            case nil: notBefore == nil ? .wait : .retrying
            }
        let since = state == .active ? routine.registration?.completedAt : changedAt
        let age = since.map { now.since($0) } ?? .zero
        // By a clock that was set back since, nobody knows how long it has been.
        let isYoung = age >= .zero && age < NextcloudLimits.quietTime
        return DeviceStatus(
            state: state, since: since, detail: trouble?.rawValue, isQuiet: state == .pending && isYoung,
            advice: advice)
    }
}
