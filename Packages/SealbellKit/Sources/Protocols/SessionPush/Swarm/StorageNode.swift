package import PushModel
package import WireFormats

/// A storage server by its X25519 key, which proves who it is.
package struct NodeKey: Sendable, Hashable {
    package let bytes: [UInt8]

    /// `nil` unless there are 32 bytes.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count == SwarmFormLimits.nodeKeyBytes else { return nil }
        self.bytes = bytes
    }

    /// What processes share nodes out by.
    package var digest: Digest16 {
        var words: (UInt64, UInt64) = (0, 0)
        withUnsafeMutableBytes(of: &words) { $0.copyBytes(from: bytes.prefix(16)) }
        return Digest16(high: UInt64(bigEndian: words.0), low: UInt64(bigEndian: words.1))
    }
}

/// A storage server that can be reached.
package struct StorageNode: Sendable, Hashable {
    package let key: NodeKey
    package let address: IPAddress
    package let port: UInt16
    package let swarm: UInt64

    package init(key: NodeKey, address: IPAddress, port: UInt16, swarm: UInt64) {
        self.key = key
        self.address = address
        self.port = port
        self.swarm = swarm
    }
}

/// What the chain daemon tells of the network (§10.2).
package struct ServiceNodes: Sendable, Hashable {
    /// The request's body.
    package static let question =
        #"{"active_only":true,"fields":{"pubkey_x25519":true,"public_ip":true,"storage_lmq_port":true,"#
        + #""swarm_id":true,"block_hash":true,"height":true}}"#

    /// Lower-case hex.
    package var blockHash: String
    package var height: UInt64
    /// Those that can be reached, in the answer's order.
    package var nodes: [StorageNode]
    /// Of all nodes in a swarm, reachable or not.
    package var swarms: SwarmMap

    package init(blockHash: String, height: UInt64, nodes: [StorageNode], swarms: SwarmMap) {
        self.blockHash = blockHash
        self.height = height
        self.nodes = nodes
        self.swarms = swarms
    }

    /// Reads the answer's frames.
    ///
    /// A node whose entry cannot be used is passed over; an answer that is no answer is refused whole.
    ///
    /// - Throws: `.wrongType` for a failure that is told, else what is wrong with the text.
    package init(frames: [UnsafeRawBufferPointer]) throws(FormatError) {
        guard frames.count == 2, bytes(frames[0], equal: "200") else { throw FormatError(.wrongType) }
        try self.init(parsing: frames[1])
    }

    private init(parsing text: UnsafeRawBufferPointer) throws(FormatError) {
        var reader = JSONReader(text, depthLimit: SwarmFormLimits.nodesDepth)
        var (hash, height): (String?, UInt64?) = (nil, nil)
        var listed: (nodes: [StorageNode], ids: [UInt64])?
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("block_hash") {
                hash = try reader.readString().string()
            } else if name.equals("height") {
                height = try reader.readNumber().uint64
            } else if name.equals("service_node_states") {
                listed = try Self.states(&reader)
            } else {
                try reader.skipValue()
            }
        }
        try reader.end()
        guard let hash, hash.utf8.count <= SwarmFormLimits.blockHashBytes, let height, let listed else {
            throw FormatError(.wrongType)
        }
        self.init(blockHash: hash, height: height, nodes: listed.nodes, swarms: SwarmMap(listed.ids))
    }

    private static func states(
        _ reader: inout JSONReader
    ) throws(FormatError) -> (nodes: [StorageNode], ids: [UInt64]) {
        var nodes: [StorageNode] = []
        var ids: [UInt64] = []
        var keys: Set<NodeKey> = []
        try reader.beginArray()
        while try reader.nextElement() {
            guard ids.count < SwarmFormLimits.nodes else { throw FormatError(.tooLarge) }
            let state = try NodeState(&reader)
            guard let swarm = state.swarm, swarm != SwarmRing.none else { continue }
            ids.append(swarm)
            if let node = state.node, keys.insert(node.key).inserted { nodes.append(node) }
        }
        return (nodes, ids)
    }
}

/// One entry of the answer, whatever of it could be read.
private struct NodeState {
    var key: NodeKey?
    var address: IPAddress?
    var port: UInt16?
    var swarm: UInt64?

    init(_ reader: inout JSONReader) throws(FormatError) {
        try reader.beginObject()
        while let name = try reader.nextMember() {
            let kind = try reader.peek()
            if name.equals("pubkey_x25519"), kind == .string {
                let text = try reader.readString().decoded()
                // What is no hex is no key.
                key = text.count == 64 ? (try? Hex.decode(text)).flatMap { NodeKey($0) } : nil
            } else if name.equals("public_ip"), kind == .string {
                address = IPAddress(try reader.readString().string())
            } else if name.equals("storage_lmq_port"), kind == .number {
                port = try reader.readNumber().uint64.flatMap { UInt16(exactly: $0) }
            } else if name.equals("swarm_id"), kind == .number {
                swarm = try reader.readNumber().uint64
            } else {
                try reader.skipValue()
            }
        }
    }

    /// `nil`: it cannot be reached.
    var node: StorageNode? {
        guard let key, let address, address != .any, let port, port > 0, let swarm else { return nil }
        return StorageNode(key: key, address: address, port: port, swarm: swarm)
    }
}

extension JSONNumberSlice {
    /// The value when it was written as a natural number of 64 bits: swarm ids are so large.
    fileprivate var uint64: UInt64? {
        var value: UInt64 = 0
        for byte in raw {
            guard (0x30...0x39).contains(byte) else { return nil }
            let (product, over) = value.multipliedReportingOverflow(by: 10)
            let (sum, overSum) = product.addingReportingOverflow(UInt64(byte - 0x30))
            if over || overSum { return nil }
            value = sum
        }
        return value
    }
}

extension IPAddress {
    /// What a node that has no address tells.
    fileprivate static let any = IPAddress(v4: 0)
}
