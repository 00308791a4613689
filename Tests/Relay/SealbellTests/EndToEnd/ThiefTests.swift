import Foundation
import NextcloudPush
import PushModel
import SQLiteStore
import Simulators
import Testing
import WebClient
import ZulipPush

@testable import RelayProgram

/// What somebody learns who has the files of the store without its keys, and what Apple keeps beside them.
@Suite("A thief of the database", .timeLimit(.minutes(30)))
struct ThiefTests {
    private static let text =
        RelayStage.text.replacing("serves: [zulip-main]", with: "serves: [zulip-main, cloud]")
        + "  cloud: { protocol: nextcloud, apps: [acme], clients: { nextcloud-talk: acme } }\n"

    private static func files(_ stage: RelayStage) throws -> Data {
        try FileManager.default.contentsOfDirectory(atPath: stage.state).reduce(into: Data()) { all, name in
            all += FileManager.default.contents(atPath: "\(stage.state)/\(name)") ?? Data()
        }
    }

    /// What stands in the columns of an instance's registrations and of the pushes that are owed to them.
    private static func columns(
        of instance: String, _ records: [StoredRecord], _ pushes: [StoredPush]
    ) -> Set<Digest16> {
        let own = records.filter { $0.space.hasPrefix("\(instance)/") }
        let keys = Set(own.map(\.key))
        var seen = keys
        for record in own { seen.formUnion([record.owner, record.address].compactMap(\.self)) }
        for push in pushes where push.record.map(keys.contains) ?? false {
            seen.formUnion([push.id.value, push.origin] + [push.address, push.mark].compactMap(\.self))
        }
        return seen
    }

    @Test("One phone at two protocols: no column joins its registrations, and no file has an apns-id")
    func joins() async throws {
        try await RelayStage.with(Self.text) { stage in
            let token = DemoApp.token(.apns)
            stage.apns.turn { $0.shutdownUntil = .distantFuture }
            try await stage.run { relay in
                let (server, phone) = try await relay.join(.apns, token: token)
                _ = try await relay.phone(.fcm, of: server)
                let device = try HandmadeDevice()
                #expect(try await relay.post("/cloud/devices", device.form(token)).status == 200)
                _ = try await server.notify(DemoApp.message(1, "owed"), [phone], relay)
                let batch = HandmadeDevice.batch([try device.entry(token)])
                #expect(try await relay.post("/cloud/notifications", batch).status == 200)
                #expect(try await relay.owed() == 2)
            }
            var files = [try Self.files(stage)]
            let (records, pushes) = try await stage.opened { store in
                (
                    try await store.records(after: [], limit: 1_000).rows,
                    try await store.pushes(after: [], limit: 1_000).rows.map(\.push)
                )
            }
            let zulip = Self.columns(of: "zulip-main", records, pushes)
            let cloud = Self.columns(of: "cloud", records, pushes)
            #expect(pushes.count == 2 && zulip.count > 4 && cloud.count > 4)
            #expect(zulip.isDisjoint(with: cloud))
            // Apple's phone and Google's.
            let sizes = records.filter { $0.space == "zulip-main/device" }.map(\.body.count)
            #expect(sizes.count == 2 && Set(sizes).count == 1, "\(sizes)")

            stage.apns.turn { $0.shutdownUntil = nil }
            try await stage.run { relay in
                try await relay.drained()
                files.append(try Self.files(stage))
            }
            files.append(try Self.files(stage))
            let known = stage.apns.deliveries().map(\.id)
            #expect(known.count == 2)
            let rows = Set(pushes.map(\.id))
            for text in known {
                let id = try #require(PushID(text: text))
                #expect(!rows.contains(id))
                for file in files {
                    #expect(file.range(of: Data(id.value.bytes)) == nil)
                    #expect(file.range(of: Data(text.utf8)) == nil)
                }
            }
            for row in rows { #expect(files[0].range(of: Data(row.value.bytes)) != nil, "the search finds") }
        }
    }
}
