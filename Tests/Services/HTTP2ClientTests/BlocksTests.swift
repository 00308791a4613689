import CBlocks
import Testing

/// The blocks that a session takes and gives back, as libnghttp2 asks for them. Each test keeps to one
/// thread, whose lists nobody else sees.
@Suite("A session's blocks of memory")
struct BlocksTests {
    init() { _ = sealbell_blocks_begin() }

    @Test(
        "A block that is asked to be zeros is, whether it was kept or comes from the heap",
        arguments: [1, 64, 700, 2_048, 5_000])
    func zeros(_ bytes: Int) throws {
        for _ in 0..<50 {
            let block = try #require(sealbell_blocks_malloc(bytes, nil))
            let size = sealbell_blocks_size(block)
            #expect(size >= bytes)
            block.initializeMemory(as: UInt8.self, repeating: 0xA5, count: size)
            sealbell_blocks_free(block, nil)
            let zeros = try #require(sealbell_blocks_calloc(bytes, 1, nil))
            #expect(UnsafeRawBufferPointer(start: zeros, count: bytes).allSatisfy { $0 == 0 })
            sealbell_blocks_free(zeros, nil)
        }
    }

    @Test("What is more than memory can have is refused, and nothing is asked for by an overflow")
    func tooMuch() {
        #expect(sealbell_blocks_malloc(.max, nil) == nil)
        #expect(sealbell_blocks_calloc(.max, 2, nil) == nil)
        #expect(sealbell_blocks_calloc(1 << 33, 1 << 33, nil) == nil)
        #expect(sealbell_blocks_take(0) == nil)
    }

    @Test("A block of no bytes is one, and so is what was made as small as that")
    func empty() throws {
        let none = try #require(sealbell_blocks_malloc(0, nil))
        let some = try #require(sealbell_blocks_realloc(none, 3_000, nil))
        let least = try #require(sealbell_blocks_realloc(some, 0, nil))
        sealbell_blocks_free(least, nil)
        sealbell_blocks_free(try #require(sealbell_blocks_calloc(0, 16, nil)), nil)
        sealbell_blocks_free(nil, nil)
    }
}
