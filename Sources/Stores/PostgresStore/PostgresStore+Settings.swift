package import PushModel

extension PostgresStore: StoredSettings {
    package func lastTime(_ step: LastTime) async throws(StoreError) -> UnixTime? {
        try await core.single(.bulk) { session throws(PostgresFault) in
            try PostgresSettings.lastTime(step, session)
        }
    }

    package func setting(_ name: String) async throws(StoreError) -> [UInt8]? {
        try await core.single(.read) { session throws(PostgresFault) in
            try PostgresSettings.value(of: name, session)
        }
    }

    package func settle(setting name: String, to value: [UInt8]) async throws(StoreError) -> [UInt8] {
        try await core.single(.bulk) { session throws(PostgresFault) in
            try PostgresSettings.settle(name, to: value, session)
        }
    }
}
