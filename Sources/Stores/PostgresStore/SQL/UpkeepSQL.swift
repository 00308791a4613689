/// What keepers of a store run who move it or change its keys: none of it stands in the way of a push.
enum UpkeepSQL {
    /// A rule that no new or changed row meets, on every table by which a relay lives. To write it down is to
    /// wait until nobody is writing there; rows that stand may be read and deleted. Tables come in the order
    /// in which others lock them (`PostgresSQL`).
    static let bar = barred.map {
        Statement(once: lift($0) + ", ADD CONSTRAINT moved CHECK (false) NOT VALID")
    }

    static let unbar = barred.map { Statement(once: lift($0)) }

    private static func lift(_ table: String) -> String {
        "ALTER TABLE \(table) DROP CONSTRAINT IF EXISTS moved"
    }

    private static let barred = ["heads", "records", "outbox", "owners"]

    /// $1 key, $2 at most.
    static let records = Statement(
        70, "SELECT \(RecordSQL.columns) FROM records WHERE key > $1 ORDER BY key LIMIT $2")

    /// Ids rise with the time of acceptance. $1 id, $2 at most.
    static let pushes = Statement(
        71,
        """
        SELECT id, lane, class, origin, record, touched_at, not_before, custody_ends, attempt, epoch, parked,
        mark, first, sealed, address FROM outbox WHERE id > $1 ORDER BY id LIMIT $2
        """)

    /// Those of pushes that have ended. One without an outcome was accepted (see `OutboxSQL.settle`).
    /// $1 mark, $2 at most.
    static let marks = Statement(
        72,
        """
        SELECT m.mark, m.id, m.minute, coalesce(m.first, 1::int2) FROM marks m
        WHERE m.mark > $1 AND (SELECT o.id FROM outbox o WHERE o.id = m.id) IS NULL
        ORDER BY m.mark LIMIT $2
        """)

    static let lastRevision = Statement(74, "SELECT \(RecordSQL.lastGiven) FROM heads WHERE name = 'records'")

    /// $1 revision.
    static let raiseRevision = Statement(
        78, "UPDATE heads SET revision = greatest(\(RecordSQL.lastGiven), $1::int8) WHERE name = 'records'")

    /// $1… columns.
    static let fillRecords = Statement(
        79,
        """
        INSERT INTO records (\(RecordSQL.columns))
        SELECT * FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::uuid[], $5::int8[], $6::int2[],
        $7::int8[], $8::int8[], $9::int8[], $10::int8[], $11::bytea[])
        ON CONFLICT (key) DO NOTHING
        """)

    /// Pushes of an owner that is not alive, with the marks that they hold. $1 owner, $2 clock ahead,
    /// $3… columns, the outcome 0 for none.
    static let fillPushes = Statement(
        80,
        """
        WITH item AS MATERIALIZED (
            SELECT * FROM unnest($3::uuid[], $4::text[], $5::int2[], $6::uuid[], $7::uuid[], $8::int8[],
            $9::int8[], $10::int8[], $11::int4[], $12::int8[], $13::uuid[], $14::int2[], $15::bytea[],
            $16::uuid[])
            AS i(id, lane, class, origin, record, touched_at, not_before, custody_ends, attempt, epoch, mark,
            first, sealed, address)
        ), present AS (
            INSERT INTO owners (owner, alive_until) VALUES ($1, \(PostgresSQL.clock("$2")))
            ON CONFLICT (owner) DO NOTHING
        ), held AS (
            INSERT INTO marks (mark, id, minute)
            SELECT i.mark, i.id, (\(PostgresSQL.clock("$2")) / 60000)::int4 FROM item i
            WHERE i.mark IS NOT NULL ORDER BY i.mark
            ON CONFLICT (mark) DO NOTHING
        )
        INSERT INTO outbox (id, lane, class, origin, record, touched_at, not_before, custody_ends, attempt,
        owner, epoch, parked, mark, first, sealed, address)
        SELECT i.id, i.lane, i.class, i.origin, i.record, i.touched_at, i.not_before, i.custody_ends,
        i.attempt, $1, i.epoch, true, i.mark, nullif(i.first, 0), i.sealed, i.address FROM item i
        ON CONFLICT (id) DO NOTHING
        """)

    /// $1 marks, $2 ids, $3 minutes, $4 outcomes, 0 and 1 for acceptance.
    static let fillMarks = Statement(
        81,
        """
        INSERT INTO marks (mark, id, minute, first)
        SELECT m.mark, m.id, m.minute, CASE WHEN m.first > 1 THEN m.first END
        FROM unnest($1::uuid[], $2::uuid[], $3::int4[], $4::int2[]) AS m(mark, id, minute, first)
        ON CONFLICT (mark) DO NOTHING
        """)

    /// $1 keys, $2 the revisions at which they were read, $3 bodies. Row: how many still stood.
    static let resealRecords = Statement(
        82,
        """
        WITH done AS (
            UPDATE records r SET body = s.body
            FROM unnest($1::uuid[], $2::int8[], $3::bytea[]) AS s(key, revision, body)
            WHERE \(PostgresSQL.each("r.key", "s.key")) AND r.revision = s.revision RETURNING 1
        )
        SELECT count(*) FROM done
        """)

    /// Rows that somebody is just settling or taking over are left for the next round. $1 ids, $2 bytes.
    static let resealPushes = Statement(
        83,
        """
        WITH free AS MATERIALIZED (
            SELECT o.id FROM outbox o WHERE o.id = ANY($1::uuid[]) ORDER BY o.id FOR UPDATE SKIP LOCKED
        ), done AS (
            UPDATE outbox o SET sealed = s.sealed
            FROM free f, unnest($1::uuid[], $2::bytea[]) AS s(id, sealed)
            WHERE \(PostgresSQL.each("o.id", "f.id")) AND s.id = f.id RETURNING 1
        )
        SELECT count(*) FROM done
        """)
}
