#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#endif
import CSQLite
import GRDBSQLite
import Testing

@testable import SQLiteStore

/// The blocks that SQLite gives back and is given (`CBlocks/blocks.c`). Each test keeps to one thread, whose
/// lists nobody else sees.
@Suite struct SQLiteMemoryTests {
    init() throws { try BlankingFiles.install() }

    @Test(
        "A block that was given back is all zeros when it is taken again", arguments: [1, 64, 65, 700, 2048])
    func wiped(bytes: Int32) throws {
        guard sealbell_sqlite_keeps_blocks() == 1 else { return }
        let first = try #require(sqlite3_malloc(bytes))
        let size = Int(sqlite3_msize(first))
        memset(first, 0xA5, size)
        sqlite3_free(first)
        let again = try #require(sqlite3_malloc(bytes))
        defer { sqlite3_free(again) }
        #expect(again == first)
        #expect(UnsafeRawBufferPointer(start: again, count: size).allSatisfy { $0 == 0 })
    }

    @Test("Blocks are as large as they say, lie as malloc's lie, and do not overlap")
    func sizes() throws {
        var held: [(start: UInt, end: UInt)] = []
        for bytes in Array(1...130) + [1024, 2047, 2048, 2049, 5000] {
            for _ in 0..<3 {
                let block = try #require(sqlite3_malloc(Int32(bytes)))
                let size = Int(sqlite3_msize(block))
                #expect(size >= bytes)
                #expect(UInt(bitPattern: block) % 16 == 0)
                memset(block, 0x5A, size)
                held.append((UInt(bitPattern: block), UInt(bitPattern: block) + UInt(size)))
            }
        }
        held.sort { $0.start < $1.start }
        #expect(zip(held, held.dropFirst()).allSatisfy { $0.end <= $1.start })
        for block in held { sqlite3_free(UnsafeMutableRawPointer(bitPattern: block.start)) }
    }

    @Test("What stands in a block stays when it grows and shrinks, over the largest that is kept too")
    func changed() throws {
        var block = try #require(sqlite3_malloc(1))
        var size = 1
        memset(block, 0x11, 1)
        for next in [2, 64, 65, 1000, 2048, 2049, 9000, 4000, 2048, 100, 1] {
            let changed: UnsafeMutableRawPointer? = sqlite3_realloc(block, Int32(next))
            block = try #require(changed)
            let kept = UnsafeRawBufferPointer(start: block, count: min(size, next))
            #expect(kept.allSatisfy { $0 == 0x11 })
            memset(block, 0x11, next)
            size = next
        }
        sqlite3_free(block)
    }
}
