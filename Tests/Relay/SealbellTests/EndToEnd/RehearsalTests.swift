import PushTesting
import Testing
import ZulipPush

@testable import RelayProgram

@Suite("A rehearsal with a real relay's configuration", .timeLimit(.minutes(30)))
struct RehearsalTests {
    @Test("The sandbox sends with keys of its own and leaves those that the configuration names")
    func credentials() async throws {
        let real = Array("from Apple, from Google, once\n".utf8)
        let second = """
              other:
                apns: { team: A1B2C3D4E5, key_id: F6G7H8I9J0, key_file: apns.p8, bundles: [org.acme.talk] }
            instances:
            """
        let text = RelayStage.text.replacing("instances:", with: second)
            .replacing("apps: [acme]", with: "apps: [acme, other]")
        func prepare(_ folder: String) throws {
            for name in ["apns.p8", "fcm.json"] {
                try writeFile(folder + "/" + name, real, replacing: true)
            }
        }
        try await RelayStage.running(text, prepare: prepare) { relay in
            let (server, phone) = try await relay.join(.apns)
            let robot = try await relay.phone(.fcm, of: server)
            let answer = try await server.notify(.test(time: 1), [phone, robot], relay)
            #expect(answer.apple == 1 && answer.android == 1)
            for name in ["apns.p8", "fcm.json"] {
                #expect(try readFile(relay.stage.folder.path + "/" + name, limitBytes: 1 << 20) == real)
            }
        }
    }
}
