import PushModel

/// Named values.
enum PostgresSettings {
    static func value(of name: String, _ session: PostgresSession) throws(PostgresFault) -> [UInt8]? {
        let rows = try session.run([Query(SettingSQL.setting) { $0.add(name) }], commits: false)[0]
        return rows.count == 0 ? nil : rows.blob(0, 0)
    }

    /// Writes a value if there is none yet; the one that stands afterwards.
    static func settle(
        _ name: String, to value: [UInt8], _ session: PostgresSession
    ) throws(PostgresFault) -> [UInt8] {
        let put = Query(SettingSQL.putSetting) { query in
            query.add(name)
            query.add(value)
        }
        let rows = try session.run([put, Query(SettingSQL.setting) { $0.add(name) }], commits: true)[1]
        guard rows.count == 1, let standing = rows.blob(0, 0) else { throw .store(StoreError(.corrupt)) }
        return standing
    }

    /// Those whose names begin so.
    static func all(_ prefix: String, _ session: PostgresSession) throws(PostgresFault) -> [String: [UInt8]] {
        let rows = try session.run([Query(SettingSQL.settings) { $0.add(prefix) }], commits: false)[0]
        var settings: [String: [UInt8]] = [:]
        for row in 0..<rows.count { settings[rows.text(row, 0)] = rows.bytes(row, 1) }
        return settings
    }

    /// Writes a value over the one that stands; `nil` removes it.
    static func putting(_ name: String, _ value: [UInt8]?) -> Query {
        guard let value else { return Query(SettingSQL.dropSetting) { $0.add(name) } }
        return Query(SettingSQL.replaceSetting) { query in
            query.add(name)
            query.add(value)
        }
    }

    static func lastTime(_ step: LastTime, _ session: PostgresSession) throws(PostgresFault) -> UnixTime? {
        func write(_ statement: Statement, _ time: UnixTime) throws(PostgresFault) -> Rows {
            let query = Query(statement) { query in
                query.add(LastTime.setting)
                query.add(LastTime.bytes(time))
            }
            return try session.run([query], commits: true)[0]
        }
        switch step {
        case .look:
            let found = try session.run(
                [Query(SettingSQL.setting) { $0.add(LastTime.setting) }], commits: false)[0]
            if found.count == 1, let time = LastTime.time(found.bytes(0, 0)) { return time }
            let rows = try session.run([Query(SettingSQL.newestRows)], commits: false)[0]
            let pushed = try rows.digestIfAny(0, 1).map { PushID($0).acceptedAt } ?? .distantPast
            let latest = max(try rows.time(0, 0), pushed)
            return latest < LastTime.earliest ? nil : latest
        case .raise(let time):
            let rows = try write(SettingSQL.raiseSetting, time)
            return rows.count == 1 ? LastTime.time(rows.bytes(0, 0)) : nil
        case .set(let time):
            _ = try write(SettingSQL.replaceSetting, time)
            return time
        }
    }
}
