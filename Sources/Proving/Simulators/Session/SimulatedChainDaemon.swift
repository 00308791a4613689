import SessionPush
import WireFormats

/// The chain daemon: the list of nodes, and the clients that subscribe to blocks.
struct SimulatedChainDaemon {
    var knobs = ChainDaemonKnobs()
    var height: Int64 = 1
    var listeners: Set<[UInt8]> = []

    var blockHash: String {
        let digits = String(height, radix: 16)
        return String(repeating: "0", count: 64 - digits.count) + digits
    }

    /// Frames of the answer to `rpc.get_service_nodes`; `nil`: none.
    func answer(_ nodes: [StorageNode]) -> [[UInt8]]? {
        switch knobs.answers {
        case .asItShould: return [Array("200".utf8), text(nodes)]
        case .never: return nil
        case .garbage: return [Array("200".utf8), Array("{".utf8)]
        case .brokenOff:
            let text = text(nodes)
            return [Array("200".utf8), Array(text.prefix(text.count / 2))]
        case .halfOfThem: return [Array("200".utf8), text(Array(nodes.prefix(nodes.count / 2)))]
        case .failure: return [Array("500".utf8), Array("busy".utf8)]
        }
    }

    private func text(_ nodes: [StorageNode]) -> [UInt8] {
        var writer = JSONWriter(reserving: 256 * (nodes.count + 1))
        writer.beginObject()
        writer.member("block_hash", blockHash)
        writer.member("height", height)
        writer.beginArray("service_node_states")
        for node in nodes {
            writer.beginObject()
            writer.member("public_ip", node.address.text)
            writer.member("pubkey_x25519", Hex.encode(node.key.bytes))
            writer.member("storage_lmq_port", Int64(node.port))
            writer.key("swarm_id")
            writer.raw(Array(String(node.swarm).utf8))
            writer.endObject()
        }
        writer.endArray()
        writer.member("status", "OK")
        writer.endObject()
        return writer.bytes
    }
}
