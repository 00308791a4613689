import NextcloudPush
import Testing

@Suite("Nextcloud on the wire")
struct WireTests {
    @Test("The paths are known, behind a prefix or none")
    func paths() {
        #expect(NextcloudPath(sent: "/devices")?.endpoint == .devices)
        #expect(NextcloudPath(sent: "//acme-talk/notifications")?.prefix == "acme-talk")
        #expect(NextcloudPath(sent: "/a/b/devices") == nil)
    }
}
