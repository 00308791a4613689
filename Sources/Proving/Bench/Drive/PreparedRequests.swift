package import NIOCore

/// Requests made beforehand, whole: the driver only hands bytes over. One block of memory for up to a
/// gigabyte of them, so that many requests cost no allocation each.
package struct PreparedRequests: Sendable {
    private var blocks: [ByteBuffer] = []
    private var places: [(block: Int32, start: Int32, length: Int32)] = []
    /// Below the largest index that a `ByteBuffer` can have.
    private static let blockBytes = 1 << 30

    package init() {}

    package var count: Int { places.count }
    package var isEmpty: Bool { places.isEmpty }

    /// Adds a request of head and body.
    package mutating func add(head: [UInt8], body: [UInt8]) {
        let length = head.count + body.count
        if blocks.isEmpty || blocks[blocks.count - 1].writerIndex + length > Self.blockBytes {
            blocks.append(ByteBufferAllocator().buffer(capacity: 1 << 20))
        }
        let block = blocks.count - 1
        let start = blocks[block].writerIndex
        blocks[block].writeBytes(head)
        blocks[block].writeBytes(body)
        places.append((Int32(block), Int32(start), Int32(length)))
    }

    package subscript(index: Int) -> ByteBuffer {
        let place = places[index]
        guard let slice = blocks[Int(place.block)].getSlice(at: Int(place.start), length: Int(place.length))
        else {
            preconditionFailure("every place lies inside its block")
        }
        return slice
    }
}
