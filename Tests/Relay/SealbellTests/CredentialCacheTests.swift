import PushModel
import PushTesting
import Simulators
import Synchronization
import Testing

@testable import RelayProgram

@Suite("Credentials over a reload")
struct CredentialCacheTests {
    @Test("A token service's way is made anew with another authority or proxy, and only then")
    func way() throws {
        let folder = try TemporaryFolder()
        let account = try Simulators.ServiceAccount(project: "acme")
        let (key, authority) = (folder.path + "/fcm.json", folder.path + "/ca.pem")
        try writeFile(
            key, Array(account.json(tokenURI: "https://localhost:1/token").utf8), replacing: true)
        try writeFile(authority, Array("one".utf8), replacing: true)
        let made = Mutex(0)
        let app = changing(FCMSettings(serviceAccountFile: key, address: .auto)) { $0.caFile = authority }
        var standing: CredentialCache?
        /// - Returns: how often a way to the token service was made so far.
        func reload(_ proxy: OutgoingProxy? = nil) throws -> Int {
            var cache = CredentialCache(
                replacing: standing, proxy: proxy, world: .live, journal: .silent
            ) { _ in
                made.withLock { $0 += 1 }
                return ScriptedWeb()
            }
            _ = try cache.entry(app)
            standing = cache
            return made.withLock(\.self)
        }
        #expect(try reload() == 1)
        #expect(try reload() == 1)
        try writeFile(authority, Array("two".utf8), replacing: true)
        #expect(try reload() == 2)
        let proxy = try #require(OutgoingProxy("http://proxy.example.org:3128"))
        #expect(try reload(proxy) == 3)
        #expect(try reload(proxy) == 3)
        #expect(try reload() == 4)
    }
}
