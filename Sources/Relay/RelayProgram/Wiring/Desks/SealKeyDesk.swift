import AdminIngress
import AtRest
import HTTPIngress
import PushModel
import WireFormats

/// The operator's calls about the keys of the store: `GET /keys/storage`, `POST /keys/storage/release`.
struct SealKeyDesk: Sendable {
    static let path = "/keys/storage"
    static let releasePath = "/keys/storage/release"

    private let service: SealKeyService

    init(_ service: SealKeyService) { self.service = service }

    var calls: [AdminCall] {
        [
            .desk(Self.path, takesBody: false) { _ throws(DeskRefusal) in status() },
            .desk(Self.releasePath, takesBody: true, release)
        ]
    }

    private func status() -> [UInt8] {
        let progress = service.rotation.progress
        return JSONWriter.object { json in
            json.member("phase", progress.phase.rawValue)
            json.beginArray("held")
            for number in progress.held { json.int(Int64(number)) }
            json.endArray()
            json.member("store", service.rotation.storeName)
            json.member("refused", service.isRefused)
            json.counts([
                ("sealing", Int(progress.sealing)), ("missing", progress.missing),
                ("records", progress.records), ("pushes", progress.pushes), ("renewed", progress.renewed),
                ("unopened", progress.unopened), ("percent", Int(progress.share * 100))
            ])
        }
    }

    private func release(_: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let released = try await stored { () throws(StoreError) in try await service.rotation.release() }
        guard let released else {
            throw .status(409, "Older keys are still needed: ask without --drop-old how far it is.")
        }
        return JSONWriter.object { json in
            json.beginArray("released")
            for number in released { json.int(Int64(number)) }
            json.endArray()
            json.member("sealing", Int64(service.rotation.progress.sealing))
        }
    }
}
