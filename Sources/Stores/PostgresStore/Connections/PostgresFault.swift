import CPostgres
import PushModel

/// A SQLSTATE of five letters or digits, with which a server says what has happened (PostgreSQL, appendix A).
struct SQLState: Sendable, Hashable {
    let text: String

    /// Its first two letters.
    var family: Substring { text.prefix(2) }

    /// The transaction met another one; run again it may pass: serialisation failure, deadlock.
    var mayPass: Bool { text == "40001" || text == "40P01" }

    /// The values of the statement are at fault, and not the server's state.
    var blamesValues: Bool { (family == "22" || family == "23" || family == "54") && !isBarred }

    /// A page of a table or an index is damaged.
    var isDamage: Bool { family == "XX" }

    /// The only check constraint refused a row: a copy has closed the store (`UpkeepSQL.bar`).
    private var isBarred: Bool { text == "23514" }

    /// The error for a call whose statement, and so whose transaction, failed: nothing was written.
    var storeCode: StoreError.Code {
        if isBarred { return .moved }
        switch family {
        // Authorisation, and a database or schema that is not there.
        case "28", "3D", "3F": return .denied
        // Values, constraints, and damaged pages.
        case "22", "23", "XX": return .corrupt
        default: break
        }
        return switch text {
        case "42501": .denied
        // Tables or columns that are missing.
        case "42P01", "42703", "42883": .corrupt
        default: .unavailable
        }
    }
}

/// Why an exchange with the server did not go as it should.
enum PostgresFault: Error {
    /// The server refused a statement: its transaction is undone, the connection stands.
    case refused(SQLState)
    /// The connection is lost, or its answer came too late. `mayStand`: the commit had been sent.
    case lost(mayStand: Bool)
    /// Decided by us.
    case store(StoreError)

    /// The error for the caller, if there is no further try.
    var error: StoreError {
        switch self {
        case .refused(let state): StoreError(state.storeCode)
        case .lost(let mayStand): StoreError(mayStand ? .uncertain : .unavailable)
        case .store(let error): error
        }
    }
}
