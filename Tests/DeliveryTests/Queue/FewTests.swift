import Testing

@testable import Delivery

@Suite("A list of few elements")
struct FewTests {
    private func list(_ count: Int) -> Few<Int> {
        var list = Few<Int>()
        for number in 0..<count { list.append(number) }
        return list
    }

    @Test("It has what was put into it, in order", arguments: 0...4)
    func order(_ count: Int) {
        var list = list(count)
        #expect(Array(list) == Array(0..<count))
        #expect(list.count == count)
        #expect(list.isEmpty == (count == 0))
        #expect(list.first == (count == 0 ? nil : 0))
        list.prepend(-1)
        #expect(Array(list) == Array(-1..<count))
        for place in list.indices { list[place] *= 2 }
        #expect(Array(list) == (-1..<count).map { $0 * 2 })
    }

    @Test("Two are joined in order, be one of them empty", arguments: 0...2, 0...2)
    func join(_ first: Int, _ second: Int) {
        var joined = list(first)
        joined += list(second)
        #expect(Array(joined) == Array(0..<first) + Array(0..<second))
    }
}
