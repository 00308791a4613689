import PushModel
import SessionPush
import WireFormats

extension SessionNetworkSimulator {
    /// Where people write to accounts: `{"account": 66 hexadecimal digits, "data": base64}`.
    ///
    /// Apps encrypt what they write, so that two messages are never equal. Whoever writes here writes plain
    /// text, perhaps the same one again, so each message is given a hash of its own.
    package var post: SimulatedPost {
        let (thread, world) = (thread, world)
        return SimulatedPost(name: "session") { (tree, told) throws(SimulatorError) in
            let digits = Array(try tree.known(tree["account"]?.text).utf8)
            // Whatever is wrong with it, it is none.
            let account = (try? Hex.decode(digits)).flatMap { AccountID(Secret($0)) }
            let data = try tree.known(tree["data"]?.text.flatMap { SimulatorBase64.decode($0.utf8) })
            let hash = String(SimulatorBase64.encode(world.randomBytes(32)).prefix(43))
            let notice = StorageNotice.written(Secret(data), to: try tree.known(account), hash: hash, world)
            guard let thread else { return told(0) }
            thread.tell { told($0.store(notice)) }
        }
    }
}
