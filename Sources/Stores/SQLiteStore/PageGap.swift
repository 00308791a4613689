/// The unused middle of a b-tree page of SQLite: between the pointers to its cells and the cells themselves.
///
/// `secure_delete` wipes a cell where it stands when it is deleted. But when SQLite balances a tree it copies
/// cells to other pages and leaves the old copies in this gap, where no later deletion finds them: among
/// 6,000 deleted rows of 20 KB and less, some fifty were still partly in the file. The gap means nothing to
/// SQLite, so it may as well be zeros.
///
/// Layout: "B-tree Pages" in SQLite's description of its file format.
enum PageGap {
    /// - Parameter page: as it is written; `isFirst`: its header stands behind the file's, of 100 bytes.
    /// - Returns: the gap; `nil` for a page of another kind, or when there is none.
    static func find(_ page: UnsafeRawBufferPointer, isFirst: Bool) -> Range<Int>? {
        let start = isFirst ? 100 : 0
        guard page.count >= 512, page.count & (page.count - 1) == 0 else { return nil }
        // Pages of any other kind begin with the number of a page, whose first byte is 0 below 64 GiB.
        let headBytes: Int
        switch page[start] {
        case 0x02, 0x05: headBytes = 12
        case 0x0A, 0x0D: headBytes = 8
        default: return nil
        }
        let cells = short(page, start + 3)
        let first = short(page, start + 5)
        let content = first == 0 ? 65_536 : first
        let end = start + headBytes + 2 * cells
        guard end < content, content <= page.count else { return nil }
        // A page that looks like a tree's by chance has pointers that do not all lead to cells.
        for cell in 0..<cells {
            let pointer = short(page, start + headBytes + 2 * cell)
            guard content <= pointer, pointer < page.count else { return nil }
        }
        return end..<content
    }

    private static func short(_ page: UnsafeRawBufferPointer, _ offset: Int) -> Int {
        Int(page[offset]) << 8 | Int(page[offset + 1])
    }
}
