package import PushModel
import Synchronization

extension MemoryStore: StoredSettings {
    package func lastTime(_ step: LastTime) async throws(StoreError) -> UnixTime? {
        shared.state.withLock { state in
            let stored = state.settings[LastTime.setting].flatMap(LastTime.time)
            switch step {
            case .look: break
            case .raise(let time) where stored.map({ $0 >= time }) ?? false: break
            case .raise(let time), .set(let time): state.settings[LastTime.setting] = LastTime.bytes(time)
            }
            return state.settings[LastTime.setting].flatMap(LastTime.time)
        }
    }

    package func setting(_ name: String) async throws(StoreError) -> [UInt8]? {
        shared.state.withLock { $0.settings[name] }
    }

    package func settle(setting name: String, to value: [UInt8]) async throws(StoreError) -> [UInt8] {
        shared.state.withLock { state in
            if let stored = state.settings[name] { return stored }
            state.settings[name] = value
            return value
        }
    }
}
