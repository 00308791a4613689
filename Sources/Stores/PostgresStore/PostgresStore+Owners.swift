package import PushModel

extension PostgresStore: StoredOwners {
    package func renew(for span: Duration) async throws(StoreError) {
        try await core.single(.lease) { [core] session throws(PostgresFault) in
            try core.owners.renew(for: span, session)
        }
    }

    package func enrol(in groups: [GroupName], for span: Duration) async throws(StoreError) -> [Member] {
        try await core.single(.lease) { [core] session throws(PostgresFault) in
            try core.owners.enrol(in: groups, for: span, session)
        }
    }

    package func takeOver(_ lanes: [String], limit: Int) async throws(StoreError) -> Int {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            try core.owners.takeOver(lanes, limit: limit, session)
        }
    }

    package func letGo(besides lanes: [String], limit: Int) async throws(StoreError) -> Int {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            try core.owners.letGo(besides: lanes, limit: limit, session)
        }
    }

    package func reclaim(limit: Int) async throws(StoreError) -> Int {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            try core.owners.reclaim(limit: limit, session)
        }
    }

    package func load() async throws(StoreError) -> (rows: Int, bytes: Int, lanes: [String: Int]) {
        try await core.single(.read) { [core] session throws(PostgresFault) in try core.owners.load(session) }
    }
}
