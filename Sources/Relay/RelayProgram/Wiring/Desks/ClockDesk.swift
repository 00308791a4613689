import AdminIngress
import HTTPIngress
import PushModel
import WireFormats

/// The operator's calls about time: `GET /clock`, `POST /clock/trust`.
struct ClockDesk: Sendable {
    static let path = "/clock"
    static let trustPath = "/clock/trust"

    private let clock: DoubtedClock

    init(_ clock: DoubtedClock) { self.clock = clock }

    var calls: [AdminCall] {
        [
            .desk(Self.path, takesBody: false) { _ throws(DeskRefusal) in Self.answer(clock.now) },
            .desk(Self.trustPath, takesBody: true) { _ throws(DeskRefusal) in
                Self.answer(try await stored { () throws(StoreError) in try await clock.trust() })
            }
        ]
    }

    /// Milliseconds since 1970: the machine's time, and the time that things end by.
    private static func answer(_ time: DoubtedClock.Reading) -> [UInt8] {
        JSONWriter.object { json in
            json.member("wall", time.wall.milliseconds)
            json.member("believed", time.judged.milliseconds)
            json.member("doubted", time.isDoubted)
        }
    }
}
