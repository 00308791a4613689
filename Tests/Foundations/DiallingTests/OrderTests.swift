import Dialling
import PushModel
import Testing

@Suite("The order of a name's addresses")
struct OrderTests {
    private func order(_ found: [String], preferred: String? = nil, limit: Int = 8) -> [String] {
        DialOrder.order(
            found.compactMap { IPAddress($0) }, preferred: preferred.flatMap { IPAddress($0) }, limit: limit
        ).map(\.text)
    }

    private static let six = (1...3).map { "2001:db8:0:0:0:0:0:\($0)" }
    private static let four = (1...3).map { "192.0.2.\($0)" }

    @Test("Families alternate, and that of the first address leads")
    func alternation() {
        #expect(
            order(Self.six + Self.four)
                == [Self.six[0], Self.four[0], Self.six[1], Self.four[1], Self.six[2], Self.four[2]])
        #expect(
            order(Self.four + Self.six)
                == [Self.four[0], Self.six[0], Self.four[1], Self.six[1], Self.four[2], Self.six[2]])
        #expect(order(Self.four) == Self.four)
        #expect(order([]) == [])
        #expect(order([], preferred: Self.four[0]) == [])
    }

    @Test("What worked last time is first if it is still there; if not, its family is")
    func preferred() {
        #expect(order(Self.six + Self.four, preferred: Self.four[1]).first == Self.four[1])
        #expect(order(Self.six + Self.four, preferred: "198.51.100.7").first == Self.four[0])
        #expect(Set(order(Self.six + Self.four, preferred: Self.four[1])) == Set(Self.six + Self.four))
    }

    @Test("An address that comes twice is tried once, and no more are tried than the bound")
    func bounds() {
        #expect(order(Self.four + Self.four) == Self.four)
        // However many of the first family are dead, the second is tried early.
        let many = (1...20).map { "2001:db8:0:0:0:0:0:\(String($0, radix: 16))" }
        let tried = order(many + Self.four)
        #expect(tried.count == 8 && tried[1] == Self.four[0] && tried.filter { $0.contains(".") }.count == 3)
    }

    @Test("An address of one link alone is known as such")
    func linkLocal() throws {
        for (text, isLocal) in [
            ("fe80::1", true), ("febf:ffff::1", true), ("fec0::1", false), ("::1", false),
            ("192.0.2.1", false)
        ] {
            #expect(try #require(IPAddress(text)).isLinkLocal == isLocal, "\(text)")
        }
    }

    @Test("A memory of names knows the last address of each, and is bounded")
    func memory() throws {
        let memory = DialMemory()
        let addresses = try Self.four.map { try #require(IPAddress($0)) }
        #expect(memory.last("one") == nil)
        memory.worked(addresses[0], for: "one")
        memory.worked(addresses[1], for: "two")
        memory.worked(addresses[2], for: "one")
        #expect(memory.last("one") == addresses[2] && memory.last("two") == addresses[1])
        for number in 0..<300 { memory.worked(addresses[0], for: "name \(number)") }
        #expect((0..<300).filter { memory.last("name \($0)") != nil }.count <= 256)
        #expect(memory.last("name 299") == addresses[0])
    }
}
