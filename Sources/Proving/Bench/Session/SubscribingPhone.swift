import NIOCore
import PushModel
import SealbellKit
import SessionPush

/// A phone of Session in a trial or a measurement: the kit's own device with one account, and the call by
/// which it subscribes.
struct SubscribingPhone: Sendable {
    let account: AccountID
    let token: String
    let device: SessionDevice
    /// Said in the clear; however often it is said, in the same bytes.
    private let call: Call
    let subscription: HTTPCall

    init(_ target: LoadDevice, watching account: WatchedAccount, _ world: World) throws {
        (self.account, token) = (account.account, target.token)
        var device = try SessionDevice(SessionServer(host: "127.0.0.1", key: nil))
        try device.use(token: target.kind == .apns ? .apns(hex: target.token) : .fcm(target.token))
        try device.watch(account)
        guard let call = device.due(at: world.now()).first, let http = call.http else {
            throw BenchError(.setUpRefused)
        }
        (self.device, self.call, subscription) = (device, call, http)
    }

    /// The subscription as it goes over a connection.
    ///
    /// - Parameter host: value of its `Host` field.
    func request(host: String) -> ByteBuffer { ByteBuffer(requestText(subscription, host: host)) }

    /// What an answer to the subscription says became of it; `nil`: it says nothing of it. The phone stays as
    /// it is: another answer to the same bytes may follow.
    func verdict(of reply: HTTPReply, _ world: World) -> SessionVerdict? {
        var (device, random) = (device, SystemRandomNumberGenerator())
        let body = Secret(Array(reply.body.readableBytesView))
        return device.take(
            .http(status: reply.status, body: body), to: call, at: world.now(), using: &random
        ).verdicts.first
    }

    /// By what the message is known that a push has brought; `nil`: it does not open, or tells of none.
    func hash(in push: [UInt8], _ world: World) -> String? {
        // What does not open is told by the `nil`.
        (try? device.open(Delivered(json: Secret(push)), at: world.now()))?.content?.hash
    }
}
