import PushModel
import Secp256k1Keys

extension MarmotLeaf {
    /// What became of an inner event.
    package struct Receipt: Sendable {
        /// Leaves whose entries changed and are to be saved.
        package var changed: Set<UInt32> = []
        /// Entries that were passed over: malformed, of no member, from the future, without a proof.
        package var refused = 0
        /// Why the whole event was; gossip is advice, so this is for tests and curiosity.
        package var ignored: MarmotError?
    }

    /// Takes in what a member told the group (spec, "Gossip Protocol Properties": passive learning).
    ///
    /// The event's author must be the member whose leaf MLS proved to be the sender; the leaf is never read
    /// from the event.
    package mutating func receive(
        _ message: GroupMessage, in view: some GroupView, now: Moment,
        using generator: inout some RandomNumberGenerator
    ) -> Receipt {
        guard view.activeLeaves.contains(message.senderLeaf),
            view.member(ofLeaf: message.senderLeaf) == message.event.pubkey
        else { return Receipt(ignored: MarmotError(.senderMismatch)) }
        let gossip: Gossip
        do { gossip = try Gossip(reading: message.event) } catch { return Receipt(ignored: error) }
        // Our own words come back in some MLS libraries; they are known.
        guard message.senderLeaf != view.ownLeaf else { return Receipt() }
        let delay = generator.span(upTo: MarmotLimits.answerDelay)
        return take(gossip, message, in: view, now: now, delay: delay)
    }

    private mutating func take(
        _ gossip: Gossip, _ message: GroupMessage, in view: some GroupView, now: Moment, delay: Duration
    ) -> Receipt {
        let leaf = message.senderLeaf
        let member = message.event.pubkey
        switch gossip {
        case .request(let profile, let own, let reference):
            schedule.sawRequest(reference, profile, leaf: leaf, at: now.instant, delay: delay)
            guard !own.isEmpty else { return Receipt() }
            return changed(leaf, tokens.replace(leaf, of: member, with: own, message.order, now: now.wall))
        case .update(let own):
            return changed(leaf, tokens.replace(leaf, of: member, with: own, message.order, now: now.wall))
        case .removal(nil):
            return changed(leaf, tokens.replace(leaf, of: member, with: [], message.order, now: now.wall))
        case .removal(let boxes?):
            return changed(
                leaf, tokens.remove(boxes, ofLeaf: leaf, of: member, message.order, now: now.wall))
        case .list(let profile, let listed, let reference, let unusable):
            schedule.sawList(profile, answering: reference)
            return Receipt(changed: tokens.fill(listed, in: view, now: now.wall), refused: unusable)
        case .recordRequest(let reference):
            schedule.sawRequest(reference, .pushV1, leaf: leaf, at: now.instant, delay: delay)
            return Receipt()
        case .records(let records, let isList):
            if isList { schedule.sawList(.pushV1, answering: nil) }
            return take(records, in: view, now: now.wall)
        }
    }

    private mutating func take(
        _ records: [PushRecord?], in view: some GroupView, now: UnixTime
    ) -> Receipt {
        var receipt = Receipt()
        for record in records {
            guard let record, isCredible(record, in: view, now: now) else {
                receipt.refused += 1
                continue
            }
            if tokens.apply(record, group: view.groupID) { receipt.changed.insert(record.key.leaf) }
        }
        return receipt
    }

    /// Whether a record is a present member's own word. The signature comes last.
    func isCredible(_ record: PushRecord, in view: some GroupView, now: UnixTime) -> Bool {
        view.activeLeaves.contains(record.key.leaf)
            && view.member(ofLeaf: record.key.leaf) == record.key.member
            && !Self.isAhead(record.ownerTimestamp, of: now)
            && OwnerProof.verifies(record, group: view.groupID, settings.proofs)
    }

    private func changed(_ leaf: UInt32, _ isChanged: Bool) -> Receipt {
        Receipt(changed: isChanged ? [leaf] : [])
    }
}
