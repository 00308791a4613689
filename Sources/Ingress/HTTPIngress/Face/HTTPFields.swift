import NIOHTTP1

/// The fields of one request. The field that most faces ask for was found when the head was read.
struct HTTPFields: Sendable {
    let all: HTTPHeaders
    /// The first.
    private let authorization: String?
    private let authorizations: Int
    private let lengths: NameLengths

    init(_ all: HTTPHeaders, authorization: String?, authorizations: Int, lengths: NameLengths) {
        self.all = all
        self.authorization = authorization
        self.authorizations = authorizations
        self.lengths = lengths
    }

    init(_ all: HTTPHeaders) {
        var (first, count, lengths) = (String?.none, 0, NameLengths())
        for field in all {
            lengths.add(field.name)
            guard field.name.isField("authorization") else { continue }
            first = first ?? field.value
            count += 1
        }
        self.init(all, authorization: first, authorizations: count, lengths: lengths)
    }

    /// The first value of a field.
    func first(_ name: String) -> String? {
        if name == "authorization" { return authorization }
        guard lengths.mayHave(name) else { return nil }
        for field in all where field.name.isField(name) { return field.value }
        return nil
    }

    /// How often a field is given.
    func count(_ name: String) -> Int {
        if name == "authorization" { return authorizations }
        guard lengths.mayHave(name) else { return 0 }
        var count = 0
        for field in all where field.name.isField(name) { count += 1 }
        return count
    }
}

/// The lengths of the names of a request's fields, one bit each: a field that is asked for is mostly absent,
/// and then mostly no name has its length.
struct NameLengths: Sendable {
    private var bits: UInt64 = 0

    mutating func add(_ name: String) { bits |= Self.bit(name) }

    func mayHave(_ name: String) -> Bool { bits & Self.bit(name) != 0 }

    /// The last is for all names that are longer.
    private static func bit(_ name: String) -> UInt64 { 1 << UInt64(min(name.utf8.count, 63)) }
}

extension String {
    /// Whether both are one name, or one word of a value, without regard to the case of ASCII letters
    /// (RFC 9110 §5.1). Most differ in length, which is compared first.
    func isField(_ other: String) -> Bool {
        let count = utf8.count
        guard count == other.utf8.count else { return false }
        let isEqual = utf8.withContiguousStorageIfAvailable { own in
            other.utf8.withContiguousStorageIfAvailable { other in
                for index in 0..<count where own[index] != other[index] {
                    guard own[index].asSmallLetter == other[index].asSmallLetter else { return false }
                }
                return true
            }
        }
        if let known = isEqual, let known { return known }
        return utf8.elementsEqual(other.utf8) { $0.asSmallLetter == $1.asSmallLetter }
    }
}

extension UInt8 {
    fileprivate var asSmallLetter: UInt8 { 0x41...0x5A ~= self ? self | 0x20 : self }
}
