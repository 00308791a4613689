package import PushModel

extension PostgresStore: StoredSettings {
    package func lastTime(_ step: LastTime) async throws(StoreError) -> UnixTime? {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            try core.lastTime(step, session)
        }
    }

    package func setting(_ name: String) async throws(StoreError) -> [UInt8]? {
        try await core.single(.read) { session throws(PostgresFault) in
            let rows = try session.run([Query(PostgresSQL.setting) { $0.add(name) }], commits: false)[0]
            return rows.count == 0 ? nil : rows.bytes(0, 0)
        }
    }

    package func settle(setting name: String, to value: [UInt8]) async throws(StoreError) -> [UInt8] {
        try await core.single(.bulk) { session throws(PostgresFault) in
            let put = Query(PostgresSQL.putSetting) { query in
                query.add(name)
                query.add(value)
            }
            let rows = try session.run(
                [put, Query(PostgresSQL.setting) { $0.add(name) }], commits: true)[1]
            guard rows.count == 1 else { throw .store(StoreError(.corrupt)) }
            return rows.bytes(0, 0)
        }
    }
}
