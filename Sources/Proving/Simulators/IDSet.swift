import PushModel

/// The ids that were lately seen, 16 bytes each, to recognise doubles.
///
/// Two tables of `capacity` ids each: when the newer is full, the older is dropped. So an id is remembered
/// for at least `capacity` and at most twice as many later ids. Memory: at most 64 bytes times `capacity`.
struct IDSet {
    private var young: Table
    private var old: Table
    private let capacity: Int

    /// An id of zero bits only would look like an empty place; no UUID is one.
    private struct Table {
        var places: [Digest16]
        var count = 0

        init(places: Int) { self.places = Array(repeating: Digest16(high: 0, low: 0), count: places) }

        private func place(of id: Digest16) -> Int {
            // Ids made by time share their upper bits; the multiplication spreads the lower ones.
            let mixed = (id.low ^ id.high &* 0x9E37_79B9_7F4A_7C15) &* 0xD6E8_FEB8_6659_FD93
            var at = Int(mixed >> 20) & (places.count - 1)
            while places[at].low | places[at].high != 0, places[at] != id {
                at = (at + 1) & (places.count - 1)
            }
            return at
        }

        func contains(_ id: Digest16) -> Bool { count > 0 && places[place(of: id)] == id }

        mutating func insert(_ id: Digest16) {
            let at = place(of: id)
            if places[at] != id { count += 1 }
            places[at] = id
            if count * 2 > places.count { grow() }
        }

        private mutating func grow() {
            var larger = Table(places: places.count * 2)
            for id in places where id.low | id.high != 0 { larger.insert(id) }
            self = larger
        }
    }

    init(capacity: Int) {
        self.capacity = max(1, capacity)
        young = Table(places: 1024)
        old = Table(places: 1024)
    }

    /// Notes an id; false if it was noted before.
    mutating func insert(_ id: Digest16) -> Bool {
        if young.contains(id) || old.contains(id) { return false }
        if young.count >= capacity {
            old = young
            young = Table(places: 1024)
        }
        young.insert(id)
        return true
    }
}
