import PushModel

/// A protocol whose pushes are asked for over HTTP and held in durable custody, as trials see it.
protocol LoadProtocol: Sendable {
    /// As reports have it, in snake case.
    var name: String { get }

    /// An instance with a key of its own.
    func makeInstance(_ world: World) -> StagedInstance

    /// A server that the relay does not know yet.
    ///
    /// - Parameters:
    ///   - host: value of the requests' `Host` field.
    ///   - publicKey: of the instance, 32 bytes.
    ///   - bundle: the app's bundle id.
    func makeOrigin(host: String, publicKey: [UInt8], bundle: String, world: World) -> any LoadOrigin

    /// What names a push in the body that reached the push service, as ``LoadOrigin/notify`` does; `nil` in a
    /// body of another protocol.
    func mark(in body: [UInt8]) -> String?

    /// Whether the answer to an accepted request says that all its devices are registered.
    func areAlive(_ answer: String) -> Bool

    /// What stands in the answer to a request all of whose pushes were taken.
    func taken(_ pushes: Int) -> String

    /// What a siege does to an instance, in this order.
    var attacks: [SiegeAttack] { get }
}

extension LoadProtocol {
    /// So many characters behind the first place of a label in a body; `nil` where they are not there.
    static func characters(_ count: Int, behind label: String, in body: [UInt8]) -> String? {
        let label = Array(label.utf8)
        guard body.count >= label.count + count else { return nil }
        for start in 0...(body.count - label.count - count)
        where body[start] == label[0] && body[start..<start + label.count].elementsEqual(label) {
            return String(
                decoding: body[(start + label.count)..<(start + label.count + count)], as: UTF8.self)
        }
        return nil
    }
}

/// A server that exists to make load: credentials of its own, devices, and the requests.
protocol LoadOrigin: Sendable {
    var devices: [LoadDevice] { get }

    /// What makes the server known to the relay.
    func signUp() -> [PreparedRequests]

    /// Makes devices and the requests that register them.
    ///
    /// - Throws: `CryptoError` when the instance's key is none.
    mutating func addDevices(_ count: Int, _ kind: PushService) throws -> PreparedRequests

    /// Lets go of the devices' tokens; the relay keeps them.
    mutating func forgetDevices()

    /// One request for these devices, each with a ciphertext that exists once.
    ///
    /// - Parameter contentBytes: size of the plaintext before it is sealed.
    /// - Returns: the request, and what names each push in order.
    func notify(_ targets: some Collection<LoadDevice>, contentBytes: Int) throws -> LoadCall
}

/// A request, and what names its pushes.
typealias LoadCall = (head: [UInt8], body: [UInt8], marks: [String])

extension Array<any LoadProtocol> {
    /// What names a push in a delivered body; empty when it is a body of none of these.
    func mark(in body: [UInt8]) -> String { lazy.compactMap { $0.mark(in: body) }.first ?? "" }

    /// As ``LoadProtocol/areAlive(_:)``, of whichever of them answered.
    func areAlive(_ answer: String) -> Bool { contains { $0.areAlive(answer) } }
}
