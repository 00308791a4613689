import PushModel

/// Who belongs to which group.
struct MemberTable: Sendable {
    private struct Place: Hashable {
        var owner: OwnerID
        var group: GroupName
    }

    private struct Row {
        var joined: UnixTime
        var aliveUntil: UnixTime
        var hasLeft = false
    }

    private var rows: [Place: Row] = [:]

    mutating func enrol(
        _ owner: OwnerID, in groups: [GroupName], until: UnixTime, now: UnixTime
    ) -> [Member] {
        rows = rows.filter { $0.value.aliveUntil > now - Member.remembered }
        for (place, row) in rows where place.owner == owner && !groups.contains(place.group) {
            guard !row.hasLeft, row.aliveUntil > now else { continue }
            rows[place]?.aliveUntil = now
            rows[place]?.hasLeft = true
        }
        for group in groups {
            let place = Place(owner: owner, group: group)
            let joinedAt = rows[place].flatMap { $0.hasLeft || $0.aliveUntil <= now ? nil : $0.joined }
            rows[place] = Row(joined: joinedAt ?? now, aliveUntil: until)
        }
        return rows.compactMap { place, row in
            guard groups.contains(place.group) else { return nil }
            return Member(
                owner: place.owner, group: place.group, isUs: place.owner == owner,
                joinedAgo: now.since(row.joined), aliveFor: row.aliveUntil.since(now), hasLeft: row.hasLeft)
        }
    }
}
