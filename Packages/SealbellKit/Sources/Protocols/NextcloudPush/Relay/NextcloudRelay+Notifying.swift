import PushModel
import WireFormats

/// `POST /notifications` (§5.5).
extension NextcloudRelay {
    /// A large call leaves the event loop, which has others to serve: its verifications take up to 0.3 s.
    func notify(
        _ call: NotificationCall, from client: ClientKey?
    ) async throws(NextcloudError) -> NextcloudVerdict {
        guard case .unread = call else { return try await judge(try call.batch(), from: client) }
        return try await withTaskExecutorPreference(globalConcurrentExecutor) {
            () async throws(NextcloudError) in
            try await judge(try call.batch(), from: client)
        }
    }

    private func judge(
        _ batch: NotificationBatch, from client: ClientKey?
    ) async throws(NextcloudError) -> NextcloudVerdict {
        let devices = try await devices(of: batch)
        var judgement = BatchJudgement(self, of: batch, from: client)
        for (index, entry) in batch.entries.enumerated() {
            if index > 0, index.isMultiple(of: NextcloudLimits.entriesPerStep) { await Task.yield() }
            judgement.judge(entry, of: batch, devices[entry.identifier])
        }
        await level(judgement.guesses)
        return judgement.verdict()
    }

    /// What is stored of all devices of a batch, each looked up once.
    private func devices(
        of batch: NotificationBatch
    ) async throws(NextcloudError) -> [DeviceIdentifier: KnownDevice] {
        var named: Set<DeviceIdentifier> = []
        var called: Set<DeviceIdentifier> = []
        named.reserveCapacity(batch.entries.count)
        for entry in batch.entries {
            named.insert(entry.identifier)
            if entry.kind == .voip { called.insert(entry.identifier) }
        }
        let identifiers = named.map { (identifier: $0, isCalled: called.contains($0)) }
        var names: [RecordKey] = []
        names.reserveCapacity(NextcloudLimits.namesPerFind)
        var found: [Record?] = []
        found.reserveCapacity(named.count * 3)
        // A part at a time, so that others' look-ups come in between. The rows of one device stay together: a
        // pin from before a registration does not fit a call token from after it.
        for (identifier, isCalled) in identifiers {
            if names.count + 3 > NextcloudLimits.namesPerFind {
                found += try await find(names)
                names.removeAll(keepingCapacity: true)
            }
            names += recordNames(identifier, .pinAndTokens(isCalled: isCalled))
        }
        if !names.isEmpty { found += try await find(names) }
        var devices: [DeviceIdentifier: KnownDevice] = [:]
        devices.reserveCapacity(named.count)
        var at = 0
        for (identifier, isCalled) in identifiers {
            let count = isCalled ? 3 : 2
            defer { at += count }
            guard let record = found[at], let pin = NextcloudPin(body: record.body) else { continue }
            let key = parsed.key(pin.keyDER)
            devices[identifier] = KnownDevice(
                pin: pin, key: key?.key, hasReadKey: key?.isFresh ?? false, alert: Self.live(found[at + 1]),
                voip: isCalled ? Self.live(found[at + 2]) : nil)
        }
        if let known = devices.keys.first { standIn.note(known) }
        return devices
    }

    static func live(_ record: Record?) -> KnownDevice.Token? {
        guard let record, record.state == .live, let target = NextcloudTarget(body: record.body) else {
            return nil
        }
        return KnownDevice.Token(
            target: target, key: record.key, touchedAt: record.touchedAt, address: record.addressDigest)
    }
}

/// What is stored of one device.
struct KnownDevice {
    struct Token {
        let target: NextcloudTarget
        let key: RecordKey
        let touchedAt: UnixTime
        let address: Digest16?
    }

    let pin: NextcloudPin
    let key: ParsedKey?
    /// The key was not known from an earlier call.
    let hasReadKey: Bool
    /// `nil`: it has ended, and the server is to hear of it.
    let alert: Token?
    /// Crossed with the pin's pad.
    let voip: Token?
}

/// The results of one batch, entry by entry.
struct BatchJudgement {
    private let relay: NextcloudRelay
    private let now: UnixTime
    private let instant: ContinuousClock.Instant
    private var failed: Int
    private let client: ClientKey?
    private var unknown: [DeviceIdentifier] = []
    /// Identifiers without any row that were listed.
    private var unheardOf: Set<DeviceIdentifier> = []
    /// Ended ones whose rows go with this answer.
    private var gone: Set<DeviceIdentifier> = []
    private var pushes: [Push] = []
    private var sent: Set<RepeatMark> = []
    private var notes: Set<NoteCode> = []
    private var blocks = Blocks()
    private var called: Set<DeviceIdentifier> = []
    /// Whom no entry was signed for so far.
    private var unproven: [DeviceIdentifier: KnownDevice?] = [:]
    private var proven: Set<DeviceIdentifier> = []

    init(_ relay: NextcloudRelay, of batch: NotificationBatch, from client: ClientKey?) {
        self.relay = relay
        self.client = client
        failed = batch.malformed
        now = relay.world.now()
        instant = relay.world.instant()
        pushes.reserveCapacity(batch.entries.count)
        sent.reserveCapacity(batch.entries.count)
        if failed > 0 { notes.insert(NoteCode("nextcloud.malformed-entry")) }
    }

    /// Judges an entry by itself, in the order of §5.5.
    mutating func judge(_ entry: NotificationEntry, of batch: NotificationBatch, _ device: KnownDevice?) {
        // An unused key instead of a missing one: it takes the same time, and nobody can sign with it.
        let isSigned = self.isSigned(entry, batch, device.map(\.key) ?? relay.standInKey)
        note(entry, device, isSigned)
        guard let device else { return unheardOf(entry.identifier) }
        guard let hash = entry.tokenHash, hash == device.pin.tokenHash else {
            return otherHash(entry, device, isSigned)
        }
        guard let alert = device.alert else {
            // The server is told whoever asks; the rows go only when it is the server that hears it.
            if isSigned { gone.insert(entry.identifier) }
            return unknown(entry.identifier, NoteCode("nextcloud.token-ended"))
        }
        guard isSigned, let place = entry.place else { return badlySigned(entry.identifier) }
        // The store's marks tell repeats of earlier calls; those of one call it would take as different.
        let mark = batch.texts.reveal { RepeatMark(entry.identifier, $0[batch.texts(at: place).signature]) }
        guard sent.insert(mark).inserted else { return }
        guard let push = push(entry, batch, place, device, alert) else {
            return fail(NoteCode("nextcloud.app-gone"))
        }
        pushes.append(push)
    }

    func verdict() -> Verdict<NextcloudReply, NextcloudError> {
        // The server forgets the registration by this answer, whatever has come since: so do we.
        let changes = gone.flatMap { identifier in
            [.delete(relay.keys.pin(identifier), if: .any)] + relay.tokensDeleted(identifier)
        }
        var verdict = Verdict<NextcloudReply, NextcloudError>(
            pushes: pushes, changes: changes, reply: .now(.judged(unknown: unknown, failed: failed)),
            notes: Array(notes))
        // Deployed servers repeat no call, and one user's excess is no reason to lose everybody's pushes.
        verdict.withheld = { [unknown, failed] in
            .now(NextcloudReply.judged(unknown: unknown, failed: failed + $0.count))
        }
        return verdict
    }

    // MARK: refusals

    /// The server speaks of another token than the registered one, or somebody else does, who says nothing by
    /// it. The relay may hear of that token in a moment, also where the one before it has ended.
    private mutating func otherHash(_ entry: NotificationEntry, _ device: KnownDevice, _ isSigned: Bool) {
        guard isSigned else { return badlySigned(entry.identifier) }
        if relay.sights.isNew(entry.tokenHash, of: entry.identifier, at: instant) {
            return fail(NoteCode("nextcloud.token-changing"))
        }
        guard device.alert == nil else {
            return unknown(entry.identifier, NoteCode("nextcloud.other-token"))
        }
        gone.insert(entry.identifier)
        unknown(entry.identifier, NoteCode("nextcloud.token-ended"))
    }

    /// The word is the same whether the client may be told anything or not; it costs as much as the other
    /// one.
    private mutating func badlySigned(_ identifier: DeviceIdentifier) {
        _ = mayTell(identifier)
        fail(NoteCode("nextcloud.badly-signed"))
    }

    private mutating func fail(_ note: NoteCode) {
        failed += 1
        notes.insert(note)
    }

    private mutating func unknown(_ identifier: DeviceIdentifier, _ note: NoteCode) {
        unknown.append(identifier)
        fail(note)
    }

    /// No row at all: never registered here, or we have lost it. A server deletes what it reads in the list,
    /// so what we may have lost is told a few at a time.
    private mutating func unheardOf(_ identifier: DeviceIdentifier) {
        guard unheardOf.contains(identifier) || mayTell(identifier) else {
            return fail(NoteCode("nextcloud.unknown-untold"))
        }
        unheardOf.insert(identifier)
        unknown(identifier, NoteCode("nextcloud.unknown-device"))
    }

    /// Each identifier takes a unit of its client's shares once, whatever is told of it: a server that has
    /// read the answer deletes it, and nothing more by hearing it again.
    private func mayTell(_ identifier: DeviceIdentifier) -> Bool {
        guard unheardOf.count < relay.policy.unknownPerAnswer, relay.policy.unknownPerHour > 0 else {
            return false  // An allowance of 0 would be one without end.
        }
        if relay.told.contains(identifier, to: client) { return true }
        let payer = client.map { Payer.client($0) } ?? .everybody
        guard relay.charge(Toll(relay.allowances.unknown(relay.policy), of: payer)) == nil,
            relay.chargeGuess(of: client) == nil
        else { return false }
        relay.told.note(identifier, to: client)
        return true
    }

    // MARK: signatures

    /// Both texts decode to 256 bytes, and that key has signed the ciphertext.
    private mutating func isSigned(
        _ entry: NotificationEntry, _ batch: NotificationBatch, _ key: ParsedKey?
    ) -> Bool {
        guard let place = entry.place, let key = key?.key else { return false }
        let (subject, signature) = batch.texts(at: place)
        let work = relay.work
        return batch.texts.reveal { texts in
            blocks.decode(texts[subject], texts[signature]) { subject, signature in
                work.verifies(key, signature, subject)
            }
        }
    }

    private mutating func note(_ entry: NotificationEntry, _ device: KnownDevice?, _ isSigned: Bool) {
        if device != nil, isSigned {
            proven.insert(entry.identifier)
        } else {
            unproven[entry.identifier] = .some(device)
        }
        if entry.kind == .voip { called.insert(entry.identifier) }
    }

    /// Those of whom no entry was signed: as much is to be done for one that is there as for one that is not.
    var guesses: [Guess] {
        unproven.compactMap { identifier, device in
            if proven.contains(identifier) { return nil }
            return Guess(
                identifier: identifier, pinned: device?.pin.keyDER,
                records: .pinAndTokens(isCalled: called.contains(identifier)),
                hasReadKey: device?.hasReadKey ?? false)
        }
    }

    /// Memory for one ciphertext and one signature.
    private struct Blocks {
        private var bytes = [UInt8](repeating: 0, count: 2 * NextcloudLimits.blockBytes)

        mutating func decode(
            _ first: Slice<UnsafeRawBufferPointer>, _ second: Slice<UnsafeRawBufferPointer>,
            _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Bool
        ) -> Bool {
            bytes.withUnsafeMutableBytes { bytes in
                let half = NextcloudLimits.blockBytes
                let one = UnsafeMutableRawBufferPointer(rebasing: bytes[..<half])
                let two = UnsafeMutableRawBufferPointer(rebasing: bytes[half...])
                do throws(FormatError) {
                    try Base64.decode(UnsafeRawBufferPointer(rebasing: first), into: one)
                    try Base64.decode(UnsafeRawBufferPointer(rebasing: second), into: two)
                } catch {
                    return false
                }
                return body(UnsafeRawBufferPointer(one), UnsafeRawBufferPointer(two))
            }
        }
    }

    // MARK: pushes

    private func push(
        _ entry: NotificationEntry, _ batch: NotificationBatch, _ place: Int, _ device: KnownDevice,
        _ alert: KnownDevice.Token
    ) -> Push? {
        // Where the call token has ended, or there was none, a call rings as an alert.
        let call = entry.kind == .voip ? device.call : nil
        let token = call ?? alert
        guard let app = relay.apps[token.target.app], let origin = device.key?.origin else { return nil }
        let (subject, signature) = batch.texts(at: place)
        let message = batch.texts.reveal { texts in
            NextcloudPayload(
                subject: texts[subject], signature: texts[signature], kind: entry.kind,
                isHigh: entry.isHigh, isCall: call != nil
            ).message(to: token.target, app, now)
        }
        guard let message else { return nil }
        let isCall = entry.kind == .voip
        return Push(
            message: message,
            pushClass: isCall ? .urgent : entry.kind == .alert ? .normal : .background,
            origin: origin, record: token.key, touchedAt: token.touchedAt, registeredAddress: token.address,
            custodyEnds: now + (isCall ? NextcloudLimits.callCustody : NextcloudLimits.custody),
            repeatIdentity: batch.texts.reveal { Self.identity(entry.identifier, $0[signature]) })
    }

    /// Identifier ‖ signature: a repeat from anywhere is nothing new.
    private static func identity(
        _ identifier: DeviceIdentifier, _ signature: Slice<UnsafeRawBufferPointer>
    ) -> Secret {
        Secret(count: Bytes64.count + signature.count) { out in
            identifier.withBytes { out.copyMemory(from: $0) }
            UnsafeMutableRawBufferPointer(rebasing: out[Bytes64.count...])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: signature))
        }
    }
}

/// A device and the first characters of a signature. Only whoever has the user's key could make two that
/// begin so, and would lose their own entry by it.
private struct RepeatMark: Hashable {
    private let identifier: DeviceIdentifier
    private let start: (UInt64, UInt64, UInt64, UInt64)

    init(_ identifier: DeviceIdentifier, _ signature: Slice<UnsafeRawBufferPointer>) {
        self.identifier = identifier
        var start: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        withUnsafeMutableBytes(of: &start) { $0.copyBytes(from: signature.prefix($0.count)) }
        self.start = start
    }

    static func == (left: Self, right: Self) -> Bool {
        left.identifier == right.identifier && left.start == right.start
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(identifier)
        hasher.combine(start.0)
    }
}

extension KnownDevice {
    /// The call token in clear; `nil` where it has ended, there was none, or it is no longer the pin's.
    fileprivate var call: Token? {
        guard let voip, let pad = pin.voipPad, let target = voip.target.crossed(with: pad) else { return nil }
        return Token(target: target, key: voip.key, touchedAt: voip.touchedAt, address: voip.address)
    }
}
