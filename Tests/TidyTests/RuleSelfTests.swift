import Testing

/// Every rule is shown a sample that breaks it, and one that does not.
@Suite("Tidy rules can fail")
struct RuleSelfTests {
    @Test("Fields are found, computed ones are not, and a case of the same name is no reading")
    func fields() {
        let text = """
            struct A: Sendable {
                enum B: Hashable {
                    case voip
                }
                var one: Int
                let two: [String: Int]
                var three: Int = 3
                var four: Int { 4 }
                struct C {
                    var five: B?
                }
                func six() {
                    let seven: Int = 7
                }
            }
            """
        let found = Fields.stored(SwiftText(path: "Sources/x/A.swift", text: text))
        #expect(found.map { "\($0.type).\($0.name)" } == ["A.one", "A.two", "A.three", "C.five"])
        for read in ["app.voip", "app?.voip ", "apps[0].voip)", "$0.voip", "map(\\.voip)", "a().voip"] {
            #expect(Fields.reads(read, "voip"), "\(read)")
        }
        for other in [".voip", "== .voip", "(.voip", "a.voipX", "voip: 1", "avoip", ""] {
            #expect(!Fields.reads(other, "voip"), "\(other)")
        }
    }

    @Test("A circle of files is found, whatever else they name")
    func circles() {
        let files = [
            ("A", "struct One { let two: Two }"), ("B", "enum Two { func three(_: Three?) {} }"),
            ("C", "extension Two {}\nfinal class Three { var one: [One] = [] }"),
            ("D", "protocol Four { var one: One { get } }"), ("E", "private struct Four {} // Five"),
            ("F", "struct Five { let four = \"Four\" }\nstruct Six { let five: Five }")
        ]
        let found = Circles.all(files.map { file($0.1, at: "\($0.0).swift") })
        #expect(found == [["A.swift", "B.swift", "C.swift"]])
        #expect(Circles.all(files.dropFirst(2).map { file($0.1, at: "\($0.0).swift") }) == [])
    }

    private func file(_ text: String, at path: String = "Sources/Protocols/ZulipPush/Sample.swift")
        -> SwiftText
    {
        SwiftText(path: path, text: text)
    }

    private func body(_ lines: Int) -> String {
        "func sample() {\n" + String(repeating: "    step()\n", count: lines - 2) + "}\n"
    }

    @Test("Comments and strings are not code; interpolations are")
    func blanking() {
        let text = SwiftText(
            path: "Sources/A/B.swift",
            text: """
                let a = "try! \\(print(1)) as!" // fatalError(
                /* outer /* try! */ still */ let b = #"try! " \\(x)"#
                let c = ""
                let d = 1
                """)
        #expect(text.code[0].contains("print(1)"))
        #expect(!text.code[0].contains("try!"))
        #expect(!text.code[0].contains("as!"))
        #expect(!text.code[0].contains("fatalError"))
        #expect(!text.code[1].contains("try!"))
        #expect(text.code[1].contains("let b"))
        #expect(text.code[3] == "let d = 1")
        #expect(text.code.map(\.count) == text.lines.map(\.count))
    }

    @Test("A file of 601 lines is too long, one of 600 is not")
    func fileLength() {
        #expect(Rules.fileLength(file(String(repeating: "\n", count: 601))).count == 1)
        #expect(Rules.fileLength(file(String(repeating: "\n", count: 600))).isEmpty)
    }

    @Test("A line of 111 columns is too long, one of 110 is not")
    func lineLength() {
        #expect(Rules.lineLength(file(String(repeating: "a", count: 111))).count == 1)
        #expect(Rules.lineLength(file(String(repeating: "a", count: 110))).isEmpty)
    }

    @Test("A function of 61 lines is too long, one of 60 is not")
    func functionLength() {
        #expect(Rules.functionLength(file(body(61))).count == 1)
        #expect(Rules.functionLength(file(body(60))).isEmpty)
        #expect(
            Rules.functionLength(
                file("protocol P {\n func a(\n x: Int\n ) async\n func b() -> Int\n}\n" + body(60))
            ).isEmpty)
    }

    @Test("A longer function passes when one switch without default is nearly all of it")
    func functionOfOneSwitch() {
        let cases = (0..<80).map { "    case .a\($0): \($0)\n" }.joined()
        let exhaustive = "func number() -> Int {\n    switch self {\n\(cases)    }\n}\n"
        let open = "func number() -> Int {\n    switch self {\n\(cases)    default: 0\n    }\n}\n"
        #expect(Rules.functionLength(file(exhaustive)).isEmpty)
        #expect(Rules.functionLength(file(open)).count == 1)
    }

    @Test(
        "Imports that the target does not declare are found",
        arguments: [
            ("Protocols/ZulipPush", "import NIOCore"), ("Protocols/ZulipPush", "public import Delivery"),
            ("Protocols/ZulipPush", "import Foundation"), ("Foundations/PushModel", "import Foundation"),
            ("Delivery", "package import ZulipPush"), ("Stores/SQLiteStore", "import MemoryStore"),
            ("Services/APNs", "import struct FCM.Client"),
            ("Foundations/AtRest", "import FoundationEssentials"), ("Newcomer", "import PushModel"),
            ("Stores/MemoryStore", "@preconcurrency import Logging"), ("Delivery", "import Testing")
        ])
    func imports(folder: String, line: String) {
        #expect(Self.sample.undeclared(file(line, at: "Sources/\(folder)/A.swift")).count == 1)
    }

    @Test("Imports that the target declares pass, and the toolchain's modules do")
    func importsAllowed() {
        let text = "package import PushModel\nimport Primitives\nimport Synchronization\n"
        #expect(Self.sample.undeclared(file(text)).isEmpty)
        let store = file("import Foundation\nimport GRDB\n", at: "Sources/Stores/SQLiteStore/A.swift")
        #expect(Self.sample.undeclared(store).isEmpty)
        let test = file(
            "import Foundation\nimport Testing\n@testable import ZulipPush\nimport sealbell_bench\n",
            at: "Tests/Protocols/ZulipPushTests/A.swift")
        #expect(Self.sample.undeclared(test).isEmpty)
    }

    @Test("A dependency that no file of its target imports is found; a program is not imported")
    func unused() {
        let files = [
            file("import PushModel\nimport Primitives\nimport WireFormats\n"),
            file("import PushModel\n// import GRDB\n", at: "Sources/Stores/SQLiteStore/A.swift"),
            file("import PushModel", at: "Sources/Stores/MemoryStore/A.swift"),
            file("import ZulipPush", at: "Tests/Protocols/ZulipPushTests/A.swift")
        ]
        #expect(Self.sample.unused(files) == ["SQLiteStore declares GRDB"])
        let includes = (
            path: "Sources/Stores/SQLiteStore/a.c", text: "#include <GRDB.h>\n#include \"GRDB.h\"\n"
        )
        #expect(Self.sample.unused(files, c: [includes]).isEmpty)
    }

    @Test(
        "Banned calls are found",
        arguments: [
            "print(1)", "try! run()", "x as! Int", "fatalError(\"no\")", "Task.detached { }",
            "Task { run() }",
            "Task<Void, Never> { run() }", "Task(priority: .high) { run() }",
            "Thread.sleep(forTimeInterval: 1)",
            "usleep(5)", "sleep(1)", "_ = Task.immediate { run() }"
        ])
    func bannedCalls(line: String) {
        #expect(Rules.bannedCalls(file(line)).count == 1)
    }

    @Test(
        "What only looks like a banned call passes",
        arguments: [
            "group.addTask { run() }", "fingerprint(1)", "try? run()", "x as? Int",
            "Task.sleep(for: .seconds(1))",
            "stream.print(1)", "let t: Task<Void, Never>?", "clock.sleep(1)", "func sleep(until: Int) {",
            "// print(1)"
        ])
    func innocentCalls(line: String) {
        #expect(Rules.bannedCalls(file(line)).isEmpty)
    }

    @Test(
        "A closure that a lock holds by itself is found",
        arguments: [
            "let take: Mutex<Take>", "let take = Mutex<Take?>(nil)", "let a = Mutex<@Sendable () -> Void>(b)",
            "let a = Mutex<(@Sendable (Int) async -> Void)?>(nil)", "let a: Mutex<(() -> Int)?> = b",
            "let a: Mutex<(count: Int, run: () -> Void)> = b"
        ])
    func lockedClosures(line: String) {
        let lines = "typealias Take = @Sendable (Int) async -> Void\n" + line
        #expect(Rules.lockedClosures(file(lines)).count == 1)
    }

    @Test(
        "What else a lock holds passes",
        arguments: [
            "let take: Mutex<Taken>", "let a = Mutex<(count: Int, until: Date)?>(nil)",
            "let a = Mutex<[Int]>([])",
            "let a = Mutex<(any Channel)?>(nil)", "let a = Mutex<[() -> Void]>([])",
            "func take(_ a: Mutex<Int>) -> Take"
        ])
    func innocentLocks(line: String) {
        #expect(Rules.lockedClosures(file("typealias Take = @Sendable () -> Void\n" + line)).isEmpty)
    }

    @Test("A face or a post that looks into its role is found, an instance may")
    func rolesInside() {
        let folder = "Sources/Relay/RelayProgram/Protocols/Zulip/"
        let line = "try await reception.role.prove(credentials)"
        for name in ["ZulipFace", "StatusPost"] {
            let found = Rules.rolesInside(file(line, at: "\(folder)\(name).swift"))
            #expect(found.map(\.line) == [1])
        }
        #expect(Rules.rolesInside(file(line, at: "\(folder)ZulipInstance.swift")).isEmpty)
        #expect(Rules.rolesInside(file(line, at: "Sources/Delivery/SampleFace.swift")).isEmpty)
        for line in ["let roles = all.roles", "// of reception.role", "case .roleless"] {
            #expect(Rules.rolesInside(file(line, at: "\(folder)ZulipFace.swift")).isEmpty)
        }
    }

    @Test("The executable's entry may start a task, another file of it may not")
    func entry() {
        let line = "Task { run() }"
        #expect(Rules.bannedCalls(file(line, at: "Sources/Relay/RelayProgram/Sealbell.swift")).isEmpty)
        #expect(Rules.bannedCalls(file(line, at: "Sources/Relay/RelayProgram/Other.swift")).count == 1)
    }

    @Test(
        "Waits without an end, pauses and short spans are found, and pass with their bound",
        arguments: [
            "for await note in notes {", "var notes = stream.makeAsyncIterator()",
            "await withCheckedContinuation { continuation in", "try await Task.sleep(for: .seconds(1))",
            "try await clock.sleep(for: .seconds(1))", "while !isThere() { await Task.yield() }",
            "#expect(ContinuousClock.now - began < .seconds(3))"
        ])
    func waits(line: String) {
        #expect(WaitRules.waits(file(line)).count == 1)
        #expect(WaitRules.waits(file("// It is short.\n" + line)).count == 1)
        #expect(WaitRules.waits(file("// Bound: the group is cancelled.\n" + line)).isEmpty)
    }

    @Test(
        "What only looks like such a wait passes",
        arguments: [
            "for try await status in group {", "_ = try await stream.next(\"a note\")",
            "while owed > 0 { try await pass() }", "#expect(ContinuousClock.now - began >= .seconds(3))",
            "for _ in 0..<50 { await Task.yield() }", "let sleep = world.sleep"
        ])
    func innocentWaits(line: String) { #expect(WaitRules.waits(file(line)).isEmpty) }

    @Test("A suite that waits has a time limit, none is short, and no test has one of its own")
    func timeLimits() {
        let body = "struct A {\n    @Test func a() async { await b() }\n}\n"
        #expect(WaitRules.timeLimits(file("@Suite(\"A\")\n" + body)).count == 1)
        #expect(WaitRules.timeLimits(file("@Suite(\"A\", .timeLimit(.minutes(30)))\n" + body)).isEmpty)
        #expect(WaitRules.timeLimits(file("@Suite(\"A\", .timeLimit(.minutes(5)))\n" + body)).count == 1)
        let long = "@Suite(\n    \"A\", .serialized,\n    .timeLimit(.minutes(30)))\n"
        #expect(WaitRules.timeLimits(file(long + body)).isEmpty)
        #expect(WaitRules.timeLimits(file("@Suite(\"A\") struct A {}\n")).isEmpty)
        let own = "    @Test(\n        \"A\",\n        .timeLimit(.minutes(30)))\n    func a() {}\n"
        #expect(WaitRules.timeLimits(file(own)).count == 1)
        #expect(WaitRules.timeLimits(file("@Test func a() {}\nlet timeLimit = 1\n")).isEmpty)
    }

    @Test("A protocol of eight requirements is too large, one of seven is not")
    func portSize() {
        func port(_ name: String, _ functions: Int) -> SwiftText {
            let lines = (0..<functions).map {
                "    /// func\n    mutating func step\($0)(\n        x: Int\n    )\n"
            }
            let rest = "    associatedtype T\n    static var a: Int { get }\n    init(b: Int)\n"
            return file(
                "package protocol \(name): Sendable\n{\n" + lines.joined() + rest + "}\nfunc c() {}\n")
        }
        #expect(Rules.ports(port("Port", 5)).map(\.requirements) == [7])
        #expect(Rules.portSize(port("Port", 5)).isEmpty)
        #expect(Rules.portSize(port("Port", 6)).count == 1)
        #expect(Rules.portSize(port("OriginControl", 6)).isEmpty)
        #expect(Rules.portSize(port("OriginControl", 5)).count == 1, "an exception that is none any more")
        #expect(Rules.portSize(file("protocol A: B, C {}\nlet a: any A\n")).isEmpty)
    }

    @Test("Swallowed errors are found, explained ones pass")
    func swallowedErrors() {
        #expect(Rules.swallowedErrors(file("do { try a() } catch { }")).count == 1)
        #expect(Rules.swallowedErrors(file("try? a()")).count == 1)
        #expect(Rules.swallowedErrors(file("// Closing twice is harmless.\ntry? a()")).isEmpty)
        #expect(Rules.swallowedErrors(file("try? a() // Closing twice is harmless.")).isEmpty)
    }

    @Test(
        "Unchecked sendability needs a safety line",
        arguments: ["final class A: @unchecked Sendable {", "nonisolated(unsafe) let a = make()"])
    func safety(line: String) {
        #expect(Rules.missingSafety(file(line)).count == 1)
        #expect(Rules.missingSafety(file("// It is shared.\n" + line)).count == 1)
        #expect(Rules.missingSafety(file("// Safety: only its loop touches it.\n" + line)).isEmpty)
        #expect(Rules.missingSafety(file("final class A: @unchecked Sendable {\n // Safety: yes.")).isEmpty)
        #expect(
            Rules.missingSafety(file("/// Safety: only its\n/// loop touches it.\n@frozen\n" + line)).isEmpty)
    }

    @Test("Codes are read from enumerations, rows from tables")
    func errorCodes() {
        let text = """
            struct SampleError {
                enum Code: String, CaseIterable {
                    case requestExpired = "REQUEST_EXPIRED", other
                    case `default`
                    var status: Int {
                        switch self {
                        case .other: 400
                        default: 500
                        }
                    }
                }
                enum Fruit: String { case apple }
            }
            enum ShortCode: String { case one, two }
            enum LongCode: String {
                case three,
                    four
            }
            """
        let codes = ErrorCodes.declared(file(text)).map(\.code)
        #expect(
            codes == [
                "SampleError.REQUEST_EXPIRED", "SampleError.other", "SampleError.default", "ShortCode.one",
                "ShortCode.two", "LongCode.three", "LongCode.four"
            ])
        let page =
            "# Errors\n## `AError`, of A\n| code | meaning |\n| --- | --- |\n| `other` | x `y` |\n## `B`\n|`one`| z |\ntext `two`\n"
        #expect(ErrorCodes.documented(page) == ["AError.other", "B.one"])
    }

    @Test("Unfinished words and paths of one machine are found")
    func words() {
        #expect(WordRules.unfinished("a", "// TO" + "DO later").count == 1)
        #expect(WordRules.unfinished("a", "// a st" + "ub").count == 1)
        #expect(WordRules.unfinished("a", "// st" + "ubborn").isEmpty)
        #expect(WordRules.machinePaths("a", "cd /ro" + "ot/x").count == 1)
        #expect(WordRules.machinePaths("a", "./net" + "/wo" + "rk/x").isEmpty)
        #expect(WordRules.machinePaths("a", "/var/lib/sealbell").isEmpty)
    }

    @Test("Files named on a page are found")
    func namedPaths() {
        let page = "See `Sources/A/B.swift`, `Tests/C/` and `scripts/run` or `Other/D.swift`."
        #expect(WordRules.namedPaths(page) == ["Sources/A/B.swift", "Tests/C/", "scripts/run"])
        #expect(Tree.exists("Package.swift"))
        #expect(!Tree.exists("Sources/A/B.swift"))
    }

    // MARK: manifest

    private static func target(
        _ path: String, _ dependencies: [String] = [], products: [String] = [], type: String = "regular"
    ) -> Manifest.Target {
        Manifest.Target(
            name: String(path.split(separator: "/").last ?? ""), type: type, path: path,
            dependencies: dependencies.map { .init(name: $0, isProduct: false) }
                + products.map { .init(name: $0, isProduct: true) })
    }

    private static let sample = Manifest(targets: [
        target("Sources/Foundations/PushModel"), target("Sources/Foundations/Primitives"),
        target("Sources/Foundations/WireFormats"), target("Sources/Foundations/AtRest"),
        target("Sources/Protocols/ZulipPush", ["PushModel", "Primitives", "WireFormats"]),
        target("Sources/Delivery"), target("Sources/Services/HTTP2Client"), target("Sources/Services/APNs"),
        target("Sources/Stores/MemoryStore", ["PushModel"]),
        target("Sources/Stores/SQLiteStore", ["PushModel"], products: ["GRDB"]),
        target("Sources/Ingress/HTTPIngress"), target("Sources/Ingress/AdminIngress"),
        target("Sources/Relay/RelayProgram"), target("Sources/Relay/sealbell", type: "executable"),
        target("Sources/Proving/Simulators"), target("Sources/Proving/Bench"),
        target("Sources/Proving/sealbell-bench", type: "executable"),
        target("Tests/Protocols/ZulipPushTests", ["ZulipPush", "sealbell-bench"], type: "test")
    ])

    @Test(
        "Arrows that point up, or sideways between neighbours, are found",
        arguments: [
            ("Foundations/PushModel", "WireFormats"), ("Foundations/WireFormats", "Bench"),
            ("Foundations/WireFormats", "ZulipPush"), ("Protocols/ZulipPush", "APNs"),
            ("Delivery", "HTTP2Client"), ("Delivery", "MemoryStore"), ("Stores/SQLiteStore", "MemoryStore"),
            ("Services/HTTP2Client", "APNs"), ("Services/APNs", "HTTPIngress"),
            ("Ingress/HTTPIngress", "RelayProgram"), ("Ingress/HTTPIngress", "Simulators"),
            ("Relay/RelayProgram", "Bench"), ("Relay/RelayProgram", "sealbell"),
            ("Proving/Bench", "RelayProgram"), ("Proving/Bench", "sealbell-bench")
        ])
    func wrongArrows(path: String, dependency: String) {
        let name = String(path.split(separator: "/").last ?? "")
        var targets = Self.sample.targets.filter { $0.name != name }
        targets.append(Self.target("Sources/" + path, [dependency]))
        #expect(Manifest(targets: targets).wrongArrows() == ["\(name) → \(dependency)"])
    }

    @Test("Arrows that point down pass, and those between neighbours that may see each other")
    func arrows() {
        let good = Manifest(
            targets: Self.sample.targets + [
                Self.target("Sources/Services/FCM", ["PushModel", "HTTP2Client"], products: ["Crypto"]),
                Self.target("Sources/Foundations/EventLoops", ["PushModel", "WireFormats"]),
                Self.target("Sources/Ingress/NostrIngress", ["HTTPIngress", "ZulipPush"]),
                Self.target("Sources/Relay/Wiring", ["HTTPIngress", "Simulators", "ZulipPush"]),
                Self.target("Sources/Proving/Simulation", ["Bench", "MemoryStore"]),
                Self.target("Sources/Proving/again", ["RelayProgram", "Bench"], type: "executable"),
                Self.target("Tests/AllTests", ["RelayProgram", "Bench", "sealbell"], type: "test")
            ])
        #expect(good.wrongArrows().isEmpty)
        #expect(good.strangers().isEmpty)
        #expect(Manifest(targets: [Self.target("Sources/Elsewhere/Thing")]).strangers() == ["Thing"])
        #expect(Self.target(Kit.folder + "/Sources/Protocols/ZulipPush").folder == Layers.protocols)
        #expect(Self.target(Kit.folder + "/ZulipPush").row == nil)
    }

    @Test("A server's package below a protocol is found, however deep")
    func serverProducts() {
        let bad = Manifest(targets: [
            Self.target("Sources/Foundations/WireFormats", products: ["NIOCore", "Crypto"]),
            Self.target("Sources/Foundations/AtRest", ["WireFormats"]),
            Self.target("Sources/Protocols/ZulipPush", ["AtRest"], products: ["Logging"]),
            Self.target("Sources/Stores/SQLiteStore", products: ["GRDB"])
        ])
        #expect(bad.serverProducts() == ["ZulipPush ⇢ Logging", "ZulipPush ⇢ NIOCore"])
        #expect(Self.sample.serverProducts().isEmpty)
    }
}
