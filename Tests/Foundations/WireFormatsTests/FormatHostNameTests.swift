import Testing
import WireFormats

@Suite("Names in certificates")
struct FormatHostNameTests {
    @Test(
        "A name stands for a host when equal but for case, a wildcard for exactly the leftmost label",
        arguments: [
            ("api.push.apple.com", "api.push.apple.com", true), ("API.example", "api.Example", true),
            ("fcm.googleapis.com", "*.googleapis.com", true), ("a.b.example.org", "*.example.org", false),
            ("example.org", "*.example.org", false), (".example.org", "*.example.org", false),
            ("a.org", "*.org", false), ("localhost", "*", false), ("localhost", "*.", false),
            ("a.example.org", "a*.example.org", false), ("a.example.org", "", false),
            ("a.example.org", "a.example.org.evil", false), ("xa.example.org", "a.example.org", false)
        ])
    func fits(host: String, pattern: String, expected: Bool) {
        #expect(HostName.fits(host, pattern) == expected)
    }
}
