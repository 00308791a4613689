import Primitives
import PushModel
import SessionPush
import Simulators
import SwarmIngress
import WireFormats

/// Messages on the wire, the accounts that they are for, and the arithmetic of what becomes of them, taken
/// apart: the same bytes through each primitive alone, into memory that is there already.
final class NoticeParts: Sendable {
    /// One push of one message.
    private struct Part {
        let plain: Secret
        let key: Secret
        let nonce: [UInt8]
        let service: [UInt8]
        let token: Secret
        let hash: Secret
        /// Bytes of what stands around the base64.
        let around: Int
    }

    let relay: SessionRelay
    let devices: Int
    /// `notify.message`'s one part, of each.
    let bodies: [Secret]
    private let pushes: [StorageNotice]
    private let parts: [Part]
    private let filterKey: Secret
    private let registry: HeldSubscriptions
    private let keys: SessionRecordNames
    private let world: World
    // Safety: each has one caller at a time.
    nonisolated(unsafe) private let rooms: [UnsafeMutableRawBufferPointer]

    private static let accounts = 64
    private static let callers = SwarmLimits().workers
    /// As many as the largest push has.
    private static let roomBytes = 16 << 10

    /// - Parameters:
    ///   - count: messages, each of its own hash.
    ///   - devices: of each account; every other one has FCM.
    ///   - bytes: of the message itself, which goes along.
    init(_ count: Int, devices: Int, bytes: Int, world: World) async throws {
        let (instance, apps) = try SessionMaterial.app()
        let keys = SessionRecordNames(instance)
        var (phones, records, ids) = ([[SessionMaterial.Phone]](), [Record](), [AccountID]())
        for _ in 0..<Self.accounts {
            let key = try SessionMaterial.key(world)
            let own = try (0..<devices).map { number in
                try SessionMaterial.Phone(key, number.isMultiple(of: 2) ? .apns : .firebase, world: world)
            }
            for phone in own {
                records.append(
                    SessionSubscription(phone.form, app: instance)
                        .record(keys, bundle: SessionMaterial.bundle, now: world.now()))
            }
            phones.append(own)
            ids.append(key.account)
        }
        pushes = (0..<count).map { number in
            NoticeParts.message(ids[number % Self.accounts], bytes: bytes, world)
        }
        bodies = pushes.map { $0.serialized() }
        registry = HeldSubscriptions(records)
        self.keys = keys
        self.world = world
        relay = SessionRelay(instance: instance, apps: apps, registry: registry, world: world)
        self.devices = devices
        filterKey = Secret(world.randomBytes(32))
        guard pushes.allSatisfy({ StorageHash.fits($0) }) else { throw BenchError(.setUpRefused) }
        var parts: [Part] = []
        for (number, push) in pushes.enumerated() {
            parts += try await Self.parts(of: push, relay, phones[number % Self.accounts])
        }
        self.parts = parts
        rooms = (0..<Self.callers).map { _ in .allocate(byteCount: Self.roomBytes, alignment: 64) }
        forget()
    }

    deinit { for room in rooms { room.deallocate() } }

    static func message(
        _ account: AccountID, namespace: Int16 = 0, bytes: Int, _ world: World
    ) -> StorageNotice {
        .written(Secret(world.randomBytes(bytes)), to: account, namespace: namespace, world)
    }

    /// Opens what the relay makes of a message, for what was sealed.
    private static func parts(
        of push: StorageNotice, _ relay: SessionRelay, _ phones: [SessionMaterial.Phone]
    ) async throws -> [Part] {
        let made = try await relay.receive(.notified(push)).pushes
        guard made.count == phones.count else { throw BenchError(.setUpRefused) }
        return try zip(made, phones).map { made, phone in
            let text = made.message.apns?.payload ?? made.message.fcm?.data
            let json = try text?.reveal { try JSONValue.parse($0) }
            let sealed = try Base64.decode(json?["enc_payload"]?.string ?? "")
            guard sealed.count > XChaCha20Poly1305.nonceBytes else { throw BenchError(.setUpRefused) }
            let nonce = Array(sealed[..<XChaCha20Poly1305.nonceBytes])
            let plain = try XChaCha20Poly1305.open(
                Array(sealed[XChaCha20Poly1305.nonceBytes...]), with: [], key: phone.encryptionKey,
                nonce: nonce)
            return Part(
                plain: plain, key: phone.encryptionKey, nonce: nonce,
                service: Array(phone.service.rawValue.utf8), token: phone.token,
                hash: push.hash.reveal { Secret(copying: $0) },
                around: (text?.count ?? 0) - Base64.encodedCount(sealed.count))
        }
    }

    /// Lets the relay's filter take all messages again.
    func forget() { for push in pushes { relay.release(push) } }

    /// The relay's whole way, bytes, message, look-up, pushes, and its primitives.
    func dissection(_ name: String) -> Dissection {
        Dissection(
            name: name,
            whole: Contender("whole", batch: bodies.count, undo: forget) { _ in try await self.judge() },
            primitives: primitives)
    }

    private func judge() async throws {
        for body in bodies {
            let push = try StorageNotice(parsing: body)
            let verdict = try await relay.receive(.notified(push))
            guard verdict.pushes.count == devices else { throw BenchError(.setUpRefused) }
        }
    }

    /// The same way on into the lanes.
    func laneWay() throws -> LaneWay<SessionReply, SessionError> {
        let (relay, bodies) = (relay, bodies)
        return LaneWay(
            count: bodies.count, pushes: bodies.count * devices, callers: Self.callers,
            app: try SessionMaterial.app().name, world: world,
            primitives: { at, caller in try await self.run(at, in: self.rooms[caller]) },
            judge: { at in try await relay.receive(.notified(try StorageNotice(parsing: bodies[at]))) })
    }

    /// Every primitive. Of each message: its bencode read, the hash that storage servers make of it, its
    /// keyed hash for the filter, the rows of its account found, and the plaintext written, which all its
    /// devices have in common. Of each push: the nonce drawn, the seal, the base64 of it with the text
    /// around, and the hash that names a repeat.
    ///
    /// That is what the specification has every relay do, each into memory that is there already: no copies
    /// that are owned, nothing wiped, no push put together. By their numbers: to count the holders of what an
    /// element has would cost as much as some of them.
    private var primitives: [Contender] {
        let room = rooms[0]
        return [
            primitive("bencode") { for at in $0.bodies.indices { try $0.read(at) } },
            primitive("storage_hash") { for at in $0.pushes.indices { $0.prove(at) } },
            primitive("keyed_hash") { for at in $0.pushes.indices { $0.hash(at) } },
            primitive("row_look_up") { for at in $0.pushes.indices { try await $0.find(at) } },
            primitive("plaintext") { for at in $0.pushes.indices { $0.write(at, room) } },
            primitive("nonce") { for _ in $0.parts.indices { $0.draw(room) } },
            primitive("xchacha20_poly1305") { for at in $0.parts.indices { $0.seal(at, room) } },
            primitive("base64") { for at in $0.parts.indices { $0.encode(at, room) } },
            primitive("blake2b_256") { for at in $0.parts.indices { $0.identify(at) } }
        ]
    }

    private func primitive(
        _ name: String, _ work: @escaping (NoticeParts) async throws -> Void
    ) -> Contender {
        Contender(name, batch: bodies.count) { _ in try await work(self) }
    }

    /// All of one message.
    private func run(_ at: Int, in room: UnsafeMutableRawBufferPointer) async throws {
        try read(at)
        prove(at)
        hash(at)
        try await find(at)
        write(at, room)
        for part in at * devices..<(at + 1) * devices {
            draw(room)
            seal(part, room)
            encode(part, room)
            identify(part)
        }
    }

    private func read(_ at: Int) throws(FormatError) {
        try bodies[at].reveal { (raw) throws(FormatError) in
            var reader = BencodeReader(raw)
            try reader.beginDictionary()
            _ = try reader.find("@") ? reader.readString().count : 0
            _ = try reader.find("h") ? reader.readString().count : 0
            _ = try reader.find("n") ? reader.readInteger().int64 : nil
            _ = try reader.find("t") ? reader.readInteger().int64 : nil
            _ = try reader.find("z") ? reader.readInteger().int64 : nil
            _ = try reader.find("~") ? reader.readString().count : 0
            try reader.endDictionary()
            try reader.end()
        }
    }

    private func find(_ at: Int) async throws {
        let rows = try await registry.page(
            .owner(keys.owner(pushes[at].account)), after: 0, limit: devices)
        guard rows.count == devices else { throw BenchError(.setUpRefused) }
    }

    private func prove(_ at: Int) {
        _ = Blake2b.digest32 { hash in
            hash.update(pushes[at].account.bytes)
            pushes[at].data?.reveal { hash.update($0) }
        }
    }

    private func hash(_ at: Int) {
        _ = KeyedHash.digest16(key: filterKey) { hash in
            hash.update(pushes[at].account.bytes)
            withUnsafeBytes(of: pushes[at].namespace.bigEndian) { hash.update($0) }
            pushes[at].hash.reveal { hash.update($0) }
        }
    }

    /// The account's hex digits, both times' decimal ones, and all the rest as it stands.
    private func write(_ at: Int, _ room: UnsafeMutableRawBufferPointer) {
        parts[at * devices].plain.reveal { room.copyMemory(from: $0) }
        pushes[at].account.bytes.reveal { Hex.write($0, into: room) }
        write(pushes[at].timestamp.milliseconds, room)
        write(pushes[at].expiry.milliseconds, room)
    }

    private func write(_ number: Int64, _ room: UnsafeMutableRawBufferPointer) {
        var (left, place) = (number, 80)
        while left > 0 {
            room[place] = UInt8(truncatingIfNeeded: 0x30 + left % 10)
            (left, place) = (left / 10, place - 1)
        }
    }

    private func draw(_ room: UnsafeMutableRawBufferPointer) {
        room.storeBytes(of: world.random(), toByteOffset: 0, as: UInt64.self)
        room.storeBytes(of: world.random(), toByteOffset: 8, as: UInt64.self)
        room.storeBytes(of: world.random(), toByteOffset: 16, as: UInt64.self)
    }

    private func seal(_ at: Int, _ room: UnsafeMutableRawBufferPointer) {
        parts[at].plain.reveal { plain in
            parts[at].key.reveal { key in
                parts[at].nonce.withUnsafeBytes { nonce in
                    XChaCha20Poly1305.seal(
                        plain, with: UnsafeRawBufferPointer(start: nil, count: 0), key: key, nonce: nonce,
                        into: UnsafeMutableRawBufferPointer(
                            rebasing: room[..<(plain.count + XChaCha20Poly1305.overheadBytes)]))
                }
            }
        }
    }

    /// Whatever lies in the room: the text is as long as the push's.
    private func encode(_ at: Int, _ room: UnsafeMutableRawBufferPointer) {
        let count = parts[at].nonce.count + parts[at].plain.count + XChaCha20Poly1305.overheadBytes
        let half = Self.roomBytes / 2
        let text = half..<half + Base64.encodedCount(count)
        Base64.encode(
            UnsafeRawBufferPointer(rebasing: room[..<count]),
            into: UnsafeMutableRawBufferPointer(rebasing: room[text]))
        UnsafeMutableRawBufferPointer(rebasing: room[text.upperBound...])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: room[..<parts[at].around]))
    }

    private func identify(_ at: Int) {
        parts[at].service.withUnsafeBytes { service in
            _ = Blake2b.digest32 { hash in
                hash.update(service)
                hash.update(parts[at].token)
                hash.update(parts[at].hash)
            }
        }
    }
}
