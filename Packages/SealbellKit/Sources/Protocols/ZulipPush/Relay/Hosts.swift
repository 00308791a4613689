import PushModel
import WireFormats

// Who has a host name, and who may (decision 0055).
//
// A host, a name with its port, is one server's under every policy, as deployed. Under a policy that admits
// by name (an allow-list, an invitation) the whole name is one server's: else anyone who is admitted once
// could come again at each port. And whatever the policy, a name of which one server is suspended admits no
// other.

/// The record under the host name of a sign-up.
struct HostRoom {
    /// Whose the host is; a record of ``ZulipRecordNames/host(_:)``.
    let host: Record?
    /// Whose the whole name is, where somebody was given it; a record of ``ZulipRecordNames/name(_:)``.
    let name: Record?
    let invitation: Record?
    /// How the servers stand that have the name at whatever port, without the one that asks.
    let others: [ZulipServer.Standing]
}

extension Record {
    /// Of a host or a name: the server that has it.
    var holder: UUIDText? { UUIDText(bytes: body.reveal { Array($0) }) }
}

extension ZulipRelay {
    /// How the servers stand that have this name at whatever port, without `own`.
    ///
    /// - Throws: `.hostnameTaken` where as many have it as may.
    func others(
        at host: ZulipHostname, besides own: UUIDText
    ) async throws(ZulipError) -> [ZulipServer.Standing] {
        let holders: [UUIDText]
        do throws(StoreError) {
            holders = try await registry.holders(of: keys.name(host), limit: ZulipLimits.hostsPerName)
        } catch {
            throw ZulipError(.overloaded)
        }
        if holders.count >= ZulipLimits.hostsPerName, !holders.contains(own) {
            throw ZulipError(.hostnameTaken)
        }
        let others = Set(holders).subtracting([own])
        if others.isEmpty { return [] }
        return try await find(others.map { keys.server($0) }).compactMap { $0?.serverStanding }
    }

    /// Whether the policy lets this server in under that name.
    ///
    /// - Returns: what makes the host its own, and what the admission uses up.
    /// - Throws: `.notAdmitted`, `.hostnameTaken`.
    func admit(_ form: SignUpForm, _ room: HostRoom, _ now: UnixTime) throws(ZulipError) -> [Change] {
        // Anyone who is suspended does not come back by another port.
        guard !room.others.contains(.suspended) else {
            throw ZulipError(.notAdmitted)
        }
        var used: [Change] = []
        switch admission {
        case .open: break
        case .allowList(let names):
            guard names.contains(form.hostname.name) else { throw ZulipError(.notAdmitted) }
            guard room.others.isEmpty else { throw ZulipError(.hostnameTaken) }
        case .invitation:
            guard let invitation = room.invitation, invitation.expiresAt > now else {
                throw ZulipError(.notAdmitted)
            }
            guard room.others.isEmpty else { throw ZulipError(.hostnameTaken) }
            used = [.delete(keys.invitation(form.hostname), if: .revision(invitation.revision))]
        }
        return taken(form, room, now) + used
    }

    /// A change of host: the old one becomes free, and the new one must be admitted like a sign-up's, unless
    /// only the port is another.
    func move(
        _ known: ZulipServer, _ form: SignUpForm, _ room: HostRoom, _ now: UnixTime
    ) async throws(ZulipError) -> [Change] {
        let old = ZulipHostname(Array(known.hostname.utf8))
        let isSameName = old?.name == form.hostname.name
        let changes = isSameName ? taken(form, room, now) : try admit(form, room, now)
        guard let old else { return changes }
        return changes + (try await freed(old, of: known.id, withName: !isSameName))
    }

    /// Makes the host the server's own, and where the policy is by name the name too.
    private func taken(_ form: SignUpForm, _ room: HostRoom, _ now: UnixTime) -> [Change] {
        let body = Secret(form.id.bytes)
        let host = Record(
            key: keys.host(form.hostname), owner: keys.name(form.hostname), touchedAt: now, body: body)
        if admission == .open { return [.put(host, if: .absent)] }
        let name = Record(key: keys.name(form.hostname), touchedAt: now, body: body)
        switch room.name {
        // Of two sign-ups at the same time, only one finds nothing there.
        case nil: return [.put(host, if: .absent), .put(name, if: .absent)]
        // Left by a server that no longer has a host of this name.
        case let holding? where holding.holder != form.id && room.others.isEmpty:
            return [.put(host, if: .absent), .put(name, if: .revision(holding.revision))]
        case .some: return [.put(host, if: .absent)]
        }
    }

    /// What a server that leaves a host frees: the host, and perhaps its name, each where it is its own.
    func freed(
        _ host: ZulipHostname, of server: UUIDText, withName: Bool = true
    ) async throws(ZulipError) -> [Change] {
        let names = [keys.host(host)] + (withName ? [keys.name(host)] : [])
        do throws(StoreError) { return try await registry.freed(names, of: server) } catch {
            throw ZulipError(.overloaded)
        }
    }

    /// Which refusal follows from the change that was refused: somebody else was quicker at the host, or at
    /// something else.
    func hostRefusal(_ changes: [Change]) -> @Sendable (Int) -> ZulipError {
        let spaces = [keys.hostSpace, keys.nameSpace]
        let hosts = Set(
            changes.indices.filter { index in
                guard case .put(let record, _) = changes[index] else { return false }
                return spaces.contains(record.key.space)
            })
        return { ZulipError(hosts.contains($0) ? .hostnameTaken : .overloaded) }
    }
}

extension Registry {
    /// The servers whose hosts have this name, in the order in which they were written.
    func holders(of name: RecordKey, limit: Int) async throws(StoreError) -> [UUIDText] {
        try await page(.owner(name), after: 0, limit: limit).compactMap(\.holder)
    }

    /// Deletes those of these hosts and names that are the server's.
    func freed(_ names: [RecordKey], of server: UUIDText) async throws(StoreError) -> [Change] {
        zip(names, try await find(names)).compactMap { name, record in
            guard let record, record.holder == server else { return nil }
            return .delete(name, if: .revision(record.revision))
        }
    }
}
