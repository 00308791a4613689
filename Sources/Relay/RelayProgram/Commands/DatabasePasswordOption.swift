import ArgumentParser

/// `--password-file`, for a store that a command line names.
struct DatabasePasswordOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A file with the password of a PostgreSQL user.",
            discussion: "Else PGPASSFILE, ~/.pgpass and PGPASSWORD count, as for every program with libpq.",
            valueName: "file"))
    var passwordFile: String?
}
