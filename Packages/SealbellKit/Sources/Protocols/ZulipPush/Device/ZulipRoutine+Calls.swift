import Primitives
import PushModel
import WireFormats

// The calls of the routine, and what their answers mean (§14.12).

extension ZulipRoutine {
    /// Makes the call that is due, if one is and may be made. Each has a fresh blob with the time now.
    mutating func callIfDue(_ step: inout RoutineStep<some RandomNumberGenerator>) throws(ZulipError) {
        guard let dueAt = routine.dueAt, dueAt <= step.now, routine.mayCall, let token = routine.token,
            let build = routine.build, let current = routine.current
        else { return }
        routine.dueAt = nil
        switch current.profile {
        case .v12: try callDeployed(current, token, build, &step)
        case .zap, .v11: try callAccountForm(current, token, build, &step)
        }
    }

    /// `push_account_id`, the blob, the relay's key, the account's key, the kind (§14.4, §3.7).
    private mutating func callAccountForm(
        _ current: HeldRegistration, _ token: DevicePushToken, _ build: ZulipAppBuild,
        _ step: inout RoutineStep<some RandomNumberGenerator>
    ) throws(ZulipError) {
        let key: (name: String, value: Secret)
        switch current.key {
        case .pair(let pair): key = ("push_public_key", Secret(PushPublicKey(pair).base64.utf8))
        case .pushKey(let pushKey): key = ("push_key", pushKey.base64)
        case .listed: return
        }
        guard let id = current.id else { return }
        let sealed = try Self.seal(token, build.bouncerKey, step.now, &step.generator)
        send(
            .register,
            [
                ("push_account_id", Secret(String(id).utf8)), ("encrypted_push_registration", sealed),
                ("bouncer_public_key", Secret(build.bouncerKey.utf8)), key,
                ("token_kind", Secret(token.kind.rawValue.utf8))
            ], telling: token, &step)
    }

    /// A device first, then what its columns lack (§3.1, §3.3).
    private mutating func callDeployed(
        _ current: HeldRegistration, _ token: DevicePushToken, _ build: ZulipAppBuild,
        _ step: inout RoutineStep<some RandomNumberGenerator>
    ) throws(ZulipError) {
        guard let id = current.id else { return send(.addDevice, [], telling: nil, &step) }
        // Before the state was fetched nobody knows what it lacks; then it is looked at anyway.
        guard let columns = routine.columns, !columns.isBusy(with: TokenID(token: token.token)),
            let call = try register(
                columns, token: token, bouncerKey: build.bouncerKey, now: step.now, using: &step.generator)
        else { return }
        send(
            .register, [("device_id", Secret(String(id).utf8))] + call.fields,
            telling: call.token == nil ? nil : token, &step)
    }

    private mutating func send(
        _ kind: ZulipDeviceCall.Kind, _ fields: [(name: String, value: Secret)],
        telling token: DevicePushToken?, _ step: inout RoutineStep<some RandomNumberGenerator>
    ) {
        guard let current = routine.current, let build = routine.build else { return }
        routine.lastCall += 1
        let number = routine.lastCall
        routine.underWay = DeviceRoutine.CallUnderWay(
            number: number, kind: kind, since: step.now, hasToken: token != nil)
        if let token {
            routine.current?.told = HeldRegistration.Told(
                kind: token.kind, token: token.token, bouncerKey: build.bouncerKey, call: number)
            routine.checkAt = nil
        }
        step.actions.append(
            .call(ZulipDeviceCall(number: number, kind: kind, profile: current.profile, fields: fields)))
    }

    // MARK: answers

    mutating func settle(
        _ call: UInt64, _ answer: ZulipDeviceAnswer,
        _ step: inout RoutineStep<some RandomNumberGenerator>
    ) {
        let verdict = AnswerVerdict(answer, now: step.now)
        guard let underWay = routine.underWay, underWay.number == call else {
            // Of a registration that another has taken the place of: the server has it, and is to forget it.
            if case .success = verdict, let place = routine.former.firstIndex(where: { $0.call == call }) {
                routine.former[place].isToBeForgotten = true
            }
            return
        }
        routine.underWay = nil
        switch verdict {
        case .success(let deviceID): succeed(underWay, deviceID, &step)
        case .later(let asked): retry(asked, &step)
        case .loggedOut(let code): logOut(code: code, &step)
        case .refused(let code):
            routine.halt = .refused(code: code, since: step.now)
            routine.want(by: step.now)
            notify(.serverRefuses, &step)
        }
    }

    private mutating func retry(
        _ asked: Duration?, _ step: inout RoutineStep<some RandomNumberGenerator>
    ) {
        routine.failures = min(routine.failures, ZulipLimits.countedFailures) + 1
        var pause = ZulipLimits.callRetry.draw(routine.failures, using: &step.generator)
        if let asked, asked > .zero {
            // At least what the server says, and up to half as long again.
            let least = asked.wholeMilliseconds
            let drawn = Int64.random(in: least...least + least / 2, using: &step.generator)
            pause = max(pause, .milliseconds(drawn))
        }
        routine.dueAt = step.now + pause
    }

    private mutating func succeed(
        _ call: DeviceRoutine.CallUnderWay, _ deviceID: Int64?,
        _ step: inout RoutineStep<some RandomNumberGenerator>
    ) {
        if call.kind == .addDevice {
            guard let deviceID else { return retry(nil, &step) }
            routine.failures = 0
            routine.current?.id = deviceID
            routine.current?.givenAt = step.now
            routine.columns = ZulipDeviceState()
            routine.want(by: step.now)
            return
        }
        routine.failures = 0
        end([.serverRefuses, .logInAgain], &step)
        if let current = routine.current, current.id == nil, let told = current.told {
            // The device was removed meanwhile.
            return seeLost(.none, told, &step)
        }
        noteColumns(call, step.now)
        // A new key alone is not a registration.
        guard call.hasToken, let told = routine.current?.told else { return wantWhatLacks(step.now) }
        routine.current?.isAcknowledged = true
        routine.acknowledged = DeviceRoutine.Acknowledgement(
            at: step.now, kind: told.kind, token: told.token)
        routine.isRetrying = false
        // A repeat leaves an active one active.
        if let columns = routine.columns {
            routine.show(columns.shown, step.now)
        } else if routine.shown != .active {
            routine.show(.pending, step.now)
        }
        routine.checkAt = step.now + ZulipLimits.registrationGrace
    }
}

/// What an answer to a registering call means.
enum AnswerVerdict: Sendable {
    /// With the `device_id` that the answer has, where it has one.
    case success(deviceID: Int64?)
    /// The same call may be answered otherwise; the server asks for that pause.
    case later(asked: Duration?)
    case loggedOut(code: String?)
    case refused(code: String?)

    /// Of an answer to a registering call.
    init(_ answer: ZulipDeviceAnswer, now: UnixTime) {
        self.init(answer, AnswerMembers(answer.body, atMost: ZulipLimits.callAnswerBytes), now: now)
    }

    /// - Parameter body: the members of the answer's body.
    init(_ answer: ZulipDeviceAnswer, _ body: AnswerMembers, now: UnixTime) {
        let asked = answer.retryAfter.flatMap { RetryAfter.parse($0, now: now) } ?? body.retryAfter
        switch answer.status {
        // A page of a network's own says 200 too, but not this.
        case 200 where body.isSuccess: self = .success(deviceID: body.deviceID)
        case 401: self = .loggedOut(code: body.code)
        case 408, 425, 429: self = .later(asked: asked)
        case .some(400..<500): self = .refused(code: body.code)
        default: self = .later(asked: asked)
        }
    }
}

/// A server's word for what went wrong: compared without case, and shown in upper case (§14.5).
enum ErrorCodeText {
    /// - Returns: `nil` for what is no code: empty, too long, or with anything but letters, digits and `_`.
    static func read(_ text: JSONStringSlice) -> String? {
        guard !text.hasEscapes, (1...ZulipLimits.errorCodeBytes).contains(text.raw.count) else { return nil }
        var word: [UInt8] = []
        for byte in text.raw {
            switch byte {
            case 0x61...0x7A: word.append(byte - 0x20)
            case 0x30...0x39, 0x41...0x5A, 0x5F: word.append(byte)
            default: return nil
            }
        }
        return String(decoding: word, as: UTF8.self)
    }
}
