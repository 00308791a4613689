/// Which steps of the schema have been made.
enum SchemaSQL {
    static let schemaSteps = Statement(
        60, "SELECT number, breaks, finished_at IS NOT NULL FROM migrations ORDER BY number")

    /// $1 number, $2 name, $3 whether older programs cannot work on what comes of it.
    static let beginStep = Statement(
        61,
        """
        INSERT INTO migrations (number, name, breaks, begun_at) VALUES ($1, $2, $3, now())
        ON CONFLICT (number) DO NOTHING RETURNING number
        """)

    /// $1 number.
    static let finishStep = Statement(62, "UPDATE migrations SET finished_at = now() WHERE number = $1")
}
