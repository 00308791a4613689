import CPostgres
import PushModel

/// The parameters of one statement in PostgreSQL's binary format, in one buffer.
///
/// Arrays are `ndim, hasnull, element type, count, lower bound` and then `length, bytes` of each element, all
/// 32-bit big-endian; a length of -1 is NULL (`array_recv`, `src/backend/utils/adt/arrayfuncs.c`).
struct Parameters {
    /// Types by their fixed numbers (`pg_type.dat`).
    private enum Kind: Int32 {
        case bool = 16, bytea = 17, int8 = 20, int2 = 21, int4 = 23, text = 25, uuid = 2950
    }

    private(set) var bytes: [UInt8] = []
    private(set) var spans: [(at: Int, count: Int)?] = []

    init() {}

    // MARK: single values

    mutating func add(_ value: Int64) { single { $0.put(value) } }
    mutating func add(int32 value: Int) { single { $0.put(Int32(clamping: value)) } }
    mutating func add(int16 value: Int) { single { $0.put(Int16(clamping: value)) } }
    mutating func add(_ value: Bool) { single { $0.bytes.append(value ? 1 : 0) } }
    mutating func add(_ value: UnixTime) { add(value.milliseconds) }
    mutating func add(_ value: String) { single { $0.bytes.append(contentsOf: value.utf8) } }
    mutating func add(_ value: [UInt8]) { single { $0.bytes.append(contentsOf: value) } }
    mutating func add(_ value: Digest16?) {
        guard let value else { return spans.append(nil) }
        single { $0.put(value) }
    }

    private mutating func single(_ write: (inout Parameters) -> Void) {
        let at = bytes.count
        write(&self)
        spans.append((at, bytes.count - at))
    }

    // MARK: arrays

    mutating func add(int64s values: some Collection<Int64>) {
        array(.int8, values) {
            $0.put(Int32(8)); $0.put($1)
        }
    }
    mutating func add(int32s values: some Collection<Int>) {
        array(.int4, values) {
            $0.put(Int32(4)); $0.put(Int32(clamping: $1))
        }
    }
    mutating func add(int16s values: some Collection<Int>) {
        array(.int2, values) {
            $0.put(Int32(2)); $0.put(Int16(clamping: $1))
        }
    }
    mutating func add(times values: some Collection<UnixTime>) {
        array(.int8, values) {
            $0.put(Int32(8)); $0.put($1.milliseconds)
        }
    }
    mutating func add(bools values: some Collection<Bool>) {
        array(.bool, values) {
            $0.put(Int32(1)); $0.bytes.append($1 ? 1 : 0)
        }
    }
    mutating func add(texts values: some Collection<String>) {
        array(.text, values) { out, value in
            out.put(Int32(value.utf8.count))
            out.bytes.append(contentsOf: value.utf8)
        }
    }
    mutating func add(blobs values: some Collection<[UInt8]>) {
        array(.bytea, values) { out, value in
            out.put(Int32(value.count))
            out.bytes.append(contentsOf: value)
        }
    }
    mutating func add(digests values: some Collection<Digest16>) {
        array(.uuid, values) {
            $0.put(Int32(16)); $0.put($1)
        }
    }
    mutating func add(optionalDigests values: some Collection<Digest16?>) {
        array(.uuid, values, mayBeNull: true) { out, value in
            guard let value else { return out.put(Int32(-1)) }
            out.put(Int32(16))
            out.put(value)
        }
    }

    private mutating func array<Values: Collection>(
        _ kind: Kind, _ values: Values, mayBeNull: Bool = false,
        _ write: (inout Parameters, Values.Element) -> Void
    ) {
        single { out in
            out.put(Int32(values.isEmpty ? 0 : 1))
            out.put(Int32(mayBeNull ? 1 : 0))
            out.put(kind.rawValue)
            guard !values.isEmpty else { return }
            out.put(Int32(values.count))
            out.put(Int32(1))
            for value in values { write(&out, value) }
        }
    }

    private mutating func put(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }

    private mutating func put(_ digest: Digest16) {
        put(digest.high)
        put(digest.low)
    }

    /// Lends the parameters as libpq wants them.
    func withPointers<Result>(
        _ body: (UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?) ->
            Result
    ) -> Result {
        // A value of no bytes still needs a pointer, for nil is NULL, and an empty array may have none.
        (bytes.isEmpty ? [0] : bytes).withUnsafeBytes { raw in
            let base = raw.baseAddress?.assumingMemoryBound(to: CChar.self)
            let values = spans.map { span in span.flatMap { base?.advanced(by: $0.at) } }
            let lengths = spans.map { Int32($0?.count ?? 0) }
            let formats = [Int32](repeating: 1, count: spans.count)
            return values.withUnsafeBufferPointer { values in
                lengths.withUnsafeBufferPointer { lengths in
                    formats.withUnsafeBufferPointer { formats in
                        body(values.baseAddress, lengths.baseAddress, formats.baseAddress)
                    }
                }
            }
        }
    }
}

/// The rows that one statement gave, in binary.
///
/// A value of another length than its type has is `.corrupt`: the schema is not ours.
final class Rows {
    private let result: OpaquePointer
    let count: Int

    init(_ result: OpaquePointer) {
        self.result = result
        count = Int(PQntuples(result))
    }

    deinit { PQclear(result) }

    /// Rows that a statement without `RETURNING` wrote.
    var changed: Int { Int(String(cString: PQcmdTuples(result))) ?? 0 }

    func isNull(_ row: Int, _ column: Int32) -> Bool { PQgetisnull(result, Int32(row), column) == 1 }

    func withBytes<Value>(_ row: Int, _ column: Int32, _ read: (UnsafeRawBufferPointer) -> Value) -> Value {
        let count = Int(PQgetlength(result, Int32(row), column))
        return read(UnsafeRawBufferPointer(start: PQgetvalue(result, Int32(row), column), count: count))
    }

    func int(_ row: Int, _ column: Int32) throws(PostgresFault) -> Int64 {
        let value = withBytes(row, column) { raw -> Int64? in
            switch raw.count {
            case 8: Int64(bigEndian: raw.loadUnaligned(as: Int64.self))
            case 4: Int64(Int32(bigEndian: raw.loadUnaligned(as: Int32.self)))
            case 2: Int64(Int16(bigEndian: raw.loadUnaligned(as: Int16.self)))
            default: nil
            }
        }
        guard let value else { throw .store(StoreError(.corrupt)) }
        return value
    }

    func time(_ row: Int, _ column: Int32) throws(PostgresFault) -> UnixTime {
        UnixTime(milliseconds: try int(row, column))
    }

    func bool(_ row: Int, _ column: Int32) -> Bool { withBytes(row, column) { $0.first == 1 } }

    func text(_ row: Int, _ column: Int32) -> String {
        withBytes(row, column) { String(decoding: $0, as: UTF8.self) }
    }

    func bytes(_ row: Int, _ column: Int32) -> [UInt8] { withBytes(row, column) { Array($0) } }

    /// `nil` for NULL.
    func digestIfAny(_ row: Int, _ column: Int32) throws(PostgresFault) -> Digest16? {
        if isNull(row, column) { return nil }
        return try digest(row, column)
    }

    func digest(_ row: Int, _ column: Int32) throws(PostgresFault) -> Digest16 {
        guard let digest = withBytes(row, column, { Digest16($0) }) else {
            throw .store(StoreError(.corrupt))
        }
        return digest
    }
}

/// The columns of a stored row: what was not written by us is `nil`, and its row cannot be read.
extension Rows {
    func integer(_ row: Int, _ column: Int32, in range: ClosedRange<Int64>) -> Int64? {
        guard !isNull(row, column), let value = try? int(row, column), range.contains(value) else {
            // We do not write values of another type.
            return nil
        }
        return value
    }

    func moment(_ row: Int, _ column: Int32) -> UnixTime? {
        integer(row, column, in: RowBounds.times).map { UnixTime(milliseconds: $0) }
    }

    func name(_ row: Int, _ column: Int32) -> String? {
        guard !isNull(row, column) else { return nil }
        return withBytes(row, column) { bytes in
            bytes.count <= RowBounds.textBytes ? String(decoding: bytes, as: UTF8.self) : nil
        }
    }

    func blob(_ row: Int, _ column: Int32) -> [UInt8]? {
        guard !isNull(row, column) else { return nil }
        return withBytes(row, column) { $0.count <= RowBounds.sealedBytes ? Array($0) : nil }
    }

    func identity(_ row: Int, _ column: Int32) -> Digest16? { withBytes(row, column) { Digest16($0) } }

    /// `.some(nil)` for NULL.
    func identityIfAny(_ row: Int, _ column: Int32) -> Digest16?? {
        isNull(row, column) ? .some(nil) : identity(row, column).map { .some($0) }
    }

    func level(_ row: Int, _ column: Int32) -> PushClass? {
        integer(row, column, in: 0...255).flatMap { PushClass(rawValue: UInt8($0)) }
    }

    /// `nil` also if there is none: only the answer to a repeat depends on it.
    func outcome(_ row: Int, _ column: Int32) -> OutcomeKind? {
        integer(row, column, in: 0...255).flatMap { OutcomeKind(rawValue: UInt8($0)) }
    }
}
