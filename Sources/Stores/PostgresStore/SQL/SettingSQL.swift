/// Named values, and among them the store's own last time.
enum SettingSQL {
    /// $1 name.
    static let setting = Statement(40, "SELECT value FROM settings WHERE name = $1")

    /// $1 name, $2 value.
    static let putSetting = Statement(
        41, "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")

    /// More than there are seal keys and relays. $1 how the names begin.
    static let settings = Statement(
        73, "SELECT name, value FROM settings WHERE left(name, length($1)) = $1 LIMIT 10000")

    /// $1 name, $2 value.
    static let replaceSetting = Statement(
        76,
        """
        INSERT INTO settings (name, value) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value
        """)

    /// $1 name.
    static let dropSetting = Statement(77, "DELETE FROM settings WHERE name = $1")

    /// The later of two times, which are written so that they compare as bytes. $1 name, $2 value.
    static let raiseSetting = Statement(
        43,
        """
        INSERT INTO settings AS s (name, value) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET value = CASE WHEN octet_length(s.value) = 8 AND s.value < '\\x80'
        THEN greatest(s.value, excluded.value) ELSE excluded.value END RETURNING value
        """)

    /// The newest times in a store that an earlier version wrote: once in its life it reads every record.
    static let newestRows = Statement(
        once: """
            SELECT coalesce(greatest((SELECT max(touched_at) FROM records),
            (SELECT max(minute)::int8 * 60000 FROM marks)), 0),
            (SELECT id FROM outbox ORDER BY id DESC LIMIT 1)
            """)
}
