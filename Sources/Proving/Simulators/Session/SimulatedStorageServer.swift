import MessageSockets
import Primitives
import PushModel
import SessionPush
import WireFormats

/// One storage server: its watches and its answers.
struct SimulatedStorageServer {
    /// One account, watched by one connection.
    struct Watch {
        var namespaces: Set<Int16>
        var wantsData: Bool
        var until: ContinuousClock.Instant
    }

    struct WatchKey: Hashable {
        /// The connection's name.
        let client: [UInt8]
        let account: [UInt8]
    }

    let pair: X25519KeyPair
    var swarm: UInt64?
    var knobs = StorageNodeKnobs()
    var watches: [WatchKey: Watch] = [:]
    /// Everyone who has greeted.
    var clients: Set<[UInt8]> = []

    init(pair: X25519KeyPair, swarm: UInt64) {
        self.pair = pair
        self.swarm = swarm
    }

    /// Further requests renew the watch and can add namespaces and data; nothing can be taken away.
    mutating func watch(_ watch: MonitorJudge.Watch, for client: [UInt8], until end: ContinuousClock.Instant)
    {
        let key = WatchKey(client: client, account: watch.account)
        var held = watches[key] ?? Watch(namespaces: [], wantsData: false, until: end)
        held.namespaces.formUnion(watch.namespaces)
        held.wantsData = held.wantsData || watch.wantsData
        held.until = end
        watches[key] = held
    }

    /// Its answer to a request: the frames after the routing frame; `nil`: none.
    func answer(_ verdicts: [Result<MonitorJudge.Watch, MonitorJudge.Refusal>], isList: Bool) -> [UInt8]? {
        switch knobs.answers {
        case .asItShould, .unknownCommand, .forbidden: return MonitorJudge.reply(verdicts, isList: isList)
        case .never: return nil
        case .garbage: return Array("no bencode".utf8)
        case .tooFew: return MonitorJudge.reply(Array(verdicts.dropLast()), isList: isList)
        case .tooMany: return MonitorJudge.reply(verdicts + verdicts, isList: isList)
        case .refusal(let number):
            let refusal = MonitorJudge.Refusal(rawValue: number) ?? .arguments
            return MonitorJudge.reply(verdicts.map { _ in .failure(refusal) }, isList: isList)
        }
    }

    /// The clients to which a message is reported, and how.
    func told(_ notice: StorageNotice, at now: ContinuousClock.Instant) -> [(client: [UInt8], body: [UInt8])]
    {
        guard knobs.notifies else { return [] }
        let account = notice.account.bytes.reveal { Array($0) }
        return watches.compactMap { key, watch in
            guard key.account == account, watch.until > now, watch.namespaces.contains(notice.namespace)
            else {
                return nil
            }
            let said = watch.wantsData ? notice : notice.withoutData
            return (key.client, said.serialized().reveal { Array($0) })
        }
    }
}
