// swift-tools-version:6.2
import Foundation
import PackageDescription

// The five upcoming features and warnings as errors hold for every target of ours.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .treatAllWarnings(as: .error)
]

func product(_ name: String, _ package: String) -> Target.Dependency {
    .product(name: name, package: package)
}

let nioCore = product("NIOCore", "swift-nio")
let nioPosix = product("NIOPosix", "swift-nio")
let nioHTTP1 = product("NIOHTTP1", "swift-nio")
let nioEmbedded = product("NIOEmbedded", "swift-nio")
let nioWebSocket = product("NIOWebSocket", "swift-nio")
let nioTLS = product("NIOTLS", "swift-nio")
let nioSSL = product("NIOSSL", "swift-nio-ssl")
let nioExtras = product("NIOExtras", "swift-nio-extras")
let crypto = product("Crypto", "swift-crypto")
let cryptoExtras = product("CryptoExtras", "swift-crypto")
let grdb = product("GRDB", "GRDB.swift")
let sqlite = product("GRDBSQLite", "GRDB.swift")
let lifecycle = product("ServiceLifecycle", "swift-service-lifecycle")
let signals = product("UnixSignals", "swift-service-lifecycle")
let arguments = product("ArgumentParser", "swift-argument-parser")
let metrics = product("CoreMetrics", "swift-metrics")
let logging = product("Logging", "swift-log")
let httpClient = product("AsyncHTTPClient", "async-http-client")
let yams = product("Yams", "Yams")

// Folders say what kind of thing a target is, and stand in the order of the layers (docs/architecture.md). A target
// is called as the last part of its path.
func name(_ path: String) -> String { String(path.split(separator: "/").last ?? "") }

func library(_ path: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name(path), dependencies: dependencies, path: "Sources/\(path)", swiftSettings: strict)
}

// What an app builds lies in a package of its own, whose manifest names the same folders: a change here is one
// there (docs/decisions/0141-two-manifests-one-source.md).
let kitSources = "Packages/SealbellKit/Sources"

func kit(_ path: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(
        name: name(path), dependencies: dependencies, path: "\(kitSources)/\(path)", swiftSettings: strict)
}

// The C libraries: the system's, and on Apple hosts those of two packages, by the same module names.
#if os(macOS)
let sodium = product("Clibsodium", "swift-sodium")
let secp256k1 = product("libsecp256k1", "swift-secp256k1")
let kitLibraries: [Target] = []
let kitPackages: [(url: String, version: Version)] = [
    ("https://github.com/jedisct1/swift-sodium", "0.10.0"),
    ("https://github.com/21-DOT-DEV/swift-secp256k1", "0.23.2")
]
#else
let sodium: Target.Dependency = "Clibsodium"
let secp256k1: Target.Dependency = "libsecp256k1"
let kitLibraries: [Target] = [
    .systemLibrary(
        name: "Clibsodium", path: "\(kitSources)/Foundations/Clibsodium", pkgConfig: "libsodium",
        providers: [.apt(["libsodium-dev"])]),
    .systemLibrary(
        name: "libsecp256k1", path: "\(kitSources)/Foundations/libsecp256k1", pkgConfig: "libsecp256k1",
        providers: [.apt(["libsecp256k1-dev"])])
]
let kitPackages: [(url: String, version: Version)] = []
#endif

func program(_ path: String, _ dependencies: [Target.Dependency]) -> Target {
    .executableTarget(
        name: name(path), dependencies: dependencies, path: "Sources/\(path)", swiftSettings: strict)
}

func system(_ name: String, pkgConfig: String? = nil, package: String? = nil) -> Target {
    .systemLibrary(
        name: name, path: "Sources/Foundations/\(name)", pkgConfig: pkgConfig,
        providers: package.map { [.apt([$0])] })
}

func tests(_ path: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .testTarget(name: name(path), dependencies: dependencies, path: "Tests/\(path)", swiftSettings: strict)
}

// L0 and L1: nouns, ports, ciphers, formats. Nothing here does I/O, and all of it builds for a phone.
let foundations: [Target] = [
    system("CNghttp2", pkgConfig: "libnghttp2", package: "libnghttp2-dev"),
    // The C library's own resolver.
    system("CResolver"),
    system("CZeroMQ", pkgConfig: "libzmq", package: "libzmq3-dev"),
    kit("Foundations/PushModel"),
    kit("Foundations/Primitives", ["PushModel", sodium, crypto]),
    kit("Foundations/Secp256k1Keys", ["PushModel", "Primitives", secp256k1]),
    kit("Foundations/EdwardsKeys", ["PushModel", "Primitives", sodium]),
    kit("Foundations/WireFormats", ["PushModel"]),
    // What apps of all protocols say alike.
    kit("Foundations/SealbellKit", ["PushModel", "Primitives", "WireFormats"]),
    kit("Foundations/RSAKeys", ["PushModel", "WireFormats", crypto, cryptoExtras]),
    library("Foundations/AtRest", ["PushModel", "Primitives"]),
    library("Foundations/EventLoops", ["PushModel", nioCore]),
    library("Foundations/WorkPool", ["CWiping"]),
    library("Foundations/MessageSockets", ["PushModel", "CZeroMQ"]),
    library("Foundations/Dialling", ["PushModel", "CWiping", "CResolver", nioCore, nioPosix]),
    library(
        "Foundations/WebSocket",
        [
            "PushModel", "WireFormats", "EventLoops", "Dialling", nioCore, nioHTTP1, nioSSL, nioTLS,
            nioWebSocket,
            crypto
        ])
]

// A heap and a stack that forget: C, because it takes the place of the C library's calls. Blocks that a thread
// keeps: C, because C libraries ask for them. SQLite's settings: C, because of a call of variable length.
// PostgreSQL's library: C, because it is loaded when it is asked for. The commit: C, because one small file is
// then all that is compiled for another one.
let commit: [CSetting] =
    Context.environment["SEALBELL_COMMIT"].map { [.define("SEALBELL_COMMIT", to: "\"\($0)\"")] } ?? []
let ownC: [Target] = [
    .target(name: "CWiping", path: "Sources/Foundations/CWiping"),
    .target(name: "CPostgres", path: "Sources/Foundations/CPostgres"),
    .target(name: "CBlocks", path: "Sources/Foundations/CBlocks"),
    .target(name: "CBuild", path: "Sources/Foundations/CBuild", cSettings: commit),
    .target(
        name: "CSQLite", dependencies: ["CBlocks"], path: "Sources/Foundations/CSQLite",
        linkerSettings: [.linkedLibrary("sqlite3")])
]

// L2: neighbours that never import each other.
let rooms: [Target] = [
    kit("Protocols/ZulipPush", ["PushModel", "Primitives", "WireFormats", "SealbellKit"]),
    kit(
        "Protocols/MarmotPush",
        ["PushModel", "Primitives", "Secp256k1Keys", "WireFormats", "SealbellKit"]),
    kit(
        "Protocols/NextcloudPush",
        ["PushModel", "Primitives", "RSAKeys", "WireFormats", "SealbellKit", crypto]),
    kit(
        "Protocols/SessionPush",
        ["PushModel", "Primitives", "EdwardsKeys", "WireFormats", "SealbellKit", crypto]),
    kit(
        "Protocols/StatusPush",
        [
            "PushModel", "Primitives", "Secp256k1Keys", "WireFormats", "SealbellKit", crypto, cryptoExtras
        ]),
    library("Delivery", ["PushModel", "WorkPool", lifecycle, metrics]),
    library(
        "Services/HTTP2Client",
        [
            "PushModel", "WireFormats", "EventLoops", "Dialling", "CBlocks", "CNghttp2", nioCore, nioSSL,
            nioTLS, nioHTTP1, nioExtras
        ]),
    library(
        "Services/WebClient",
        [
            "PushModel", "WireFormats", "EventLoops", "Dialling", "CWiping", "CResolver", httpClient, nioCore,
            nioSSL, nioTLS, nioHTTP1, nioPosix
        ]),
    library("Services/APNs", ["PushModel", "WireFormats", "HTTP2Client", nioCore, crypto]),
    library("Services/FCM", ["PushModel", "WireFormats", "HTTP2Client", nioCore, cryptoExtras]),
    library("Services/Uplink", ["PushModel", "SealbellKit"]),
    library("Stores/MemoryStore", ["PushModel"]),
    library("Stores/SQLiteStore", ["PushModel", "CSQLite", grdb, sqlite, lifecycle]),
    library("Stores/PostgresStore", ["PushModel", "Dialling", "CPostgres", lifecycle])
]

// What an app publishes by; the relay publishes by it too.
let publishing: [Target] = [
    library(
        "Publishing/MarmotPublishing",
        [
            "PushModel", "Secp256k1Keys", "EventLoops", "WebSocket", "MarmotPush", "WebClient",
            nioCore, nioPosix
        ])
]

// L3: transports, and what stands beside the relay: simulators, benchmarks, test support.
let doors: [Target] = [
    library(
        "Ingress/HTTPIngress",
        [
            "PushModel", "EventLoops", nioCore, nioPosix, nioHTTP1, nioSSL, nioTLS, metrics, lifecycle
        ]),
    library(
        "Ingress/NostrIngress",
        [
            "PushModel", "WireFormats", "Secp256k1Keys", "EventLoops", "WebSocket", "MarmotPush",
            "MarmotPublishing", "Delivery", nioCore, metrics, lifecycle
        ]),
    library(
        "Ingress/SwarmIngress",
        [
            "PushModel", "Primitives", "WireFormats", "SessionPush", "MessageSockets", "Dialling", "Delivery",
            metrics, lifecycle
        ]),
    library(
        "Ingress/WakuIngress",
        ["PushModel", "WireFormats", "StatusPush", "Delivery", metrics, lifecycle]),
    library(
        "Ingress/AdminIngress",
        ["PushModel", "WireFormats", "Delivery", "HTTPIngress", crypto, metrics, lifecycle]),
    library(
        "Proving/Simulators",
        [
            "PushModel", "Secp256k1Keys", "WireFormats", "CNghttp2", "WebSocket", "MarmotPush",
            "SessionPush", "MessageSockets", "EdwardsKeys", "Primitives", nioCore, nioPosix, nioHTTP1, nioSSL,
            nioTLS, crypto, cryptoExtras, lifecycle
        ]),
    library(
        "Proving/Simulation",
        [
            "PushModel", "PushTesting", "AtRest", "Delivery", "HTTP2Client", "APNs", "FCM", "MemoryStore",
            "SQLiteStore", "OriginServer", "Uplink", "ZulipPush", "WireFormats", sqlite, lifecycle
        ]),
    library(
        "Proving/Bench",
        [
            "PushModel", "WireFormats", "Primitives", "AtRest", "HTTP2Client", "APNs", "FCM", "MarmotPush",
            "NextcloudPush", "RSAKeys", "Secp256k1Keys", secp256k1, "SessionPush",
            "SwarmIngress", "StatusPush", "WakuIngress", "Delivery", "SQLiteStore", "Simulators",
            "PushTesting", metrics,
            nioCore, nioPosix,
            sodium, "SealbellKit", "ZulipPush", crypto, cryptoExtras
        ]),
    library("Proving/PushTesting", ["PushModel", "WireFormats", logging]),
    // Names with dead addresses, and networks without IPv6.
    library("Proving/DialTesting", ["PushModel", "Dialling", nioCore, nioPosix]),
    // What tests of protocols need besides: apart, so that a store's tests are not built anew with delivery.
    library("Proving/DeliveryTesting", ["PushModel", "PushTesting", "AtRest", "Delivery", "MemoryStore"])
]

// L4: the server half, which hands to a relay.
let origin: [Target] = [
    library(
        "Origin/OriginServer",
        [
            "PushModel", "Primitives", "WireFormats", "RSAKeys", "SealbellKit", "ZulipPush", "NextcloudPush",
            "Uplink", "Delivery", "HTTPIngress", nioCore
        ])
]

let application: [Target] = [
    library(
        "Relay/RelayProgram",
        [
            "PushModel", "SealbellKit", "Primitives", "Secp256k1Keys", "WireFormats", "AtRest", "ZulipPush",
            "Delivery", "Dialling", "HTTP2Client", "WebClient", "APNs", "FCM", "MemoryStore", "SQLiteStore",
            "PostgresStore", "HTTPIngress",
            "AdminIngress", "Simulators", "EventLoops", "WorkPool", "CBuild", "CWiping", "MarmotPush",
            "MarmotPublishing", "NostrIngress", "WebSocket",
            "NextcloudPush", "RSAKeys", "SessionPush", "SwarmIngress", "StatusPush", "WakuIngress",
            "OriginServer", "Uplink", lifecycle, signals, arguments, logging, metrics, yams, nioCore,
            nioPosix, nioTLS, nioSSL
        ]),
    program("Relay/sealbell", ["RelayProgram"]),
    // Measurements and trials: a tool of ours, not a product.
    program(
        "Proving/sealbell-bench",
        ["RelayProgram", "Bench", "PushModel", "PushTesting", arguments]),
    // A tool of ours, not a product: what it looks for is in the relay.
    program("Proving/sealbell-simulate", ["Simulation", arguments])
]

let suites: [Target] = [
    tests("Foundations/PushModelTests", ["PushModel", "PushTesting"]),
    tests("Foundations/WireFormatsTests", ["WireFormats", "PushModel"]),
    tests("Foundations/SealbellKitTests", ["SealbellKit", "PushModel", "WireFormats"]),
    tests(
        "Foundations/DiallingTests",
        ["PushModel", "PushTesting", "Dialling", "DialTesting", nioCore, nioPosix]),
    tests(
        "Stores/StoreTests",
        [
            "PushModel", "PushTesting", "Dialling", "DialTesting", "AtRest", "MemoryStore", "SQLiteStore",
            "PostgresStore", "CSQLite", grdb, sqlite, nioCore, nioPosix
        ]),
    tests(
        "DeliveryTests",
        [
            "PushModel", "PushTesting", "Delivery", "MemoryStore", "SQLiteStore", "PostgresStore", "AtRest",
            "Bench", "Uplink", "SealbellKit", "WorkPool", lifecycle
        ]),
    tests(
        "Services/HTTP2ClientTests",
        [
            "PushModel", "PushTesting", "Dialling", "DialTesting", "HTTP2Client", "Simulators", "APNs", "FCM",
            "WebClient", "WireFormats", nioCore, nioPosix, nioSSL, lifecycle, "CBlocks", "CNghttp2"
        ]),
    tests(
        "Proving/SimulatorsTests",
        [
            "PushModel", "PushTesting", "Secp256k1Keys", "EventLoops", "WebSocket", "MarmotPush",
            "Simulators",
            "WebClient", "CNghttp2",
            nioCore,
            nioPosix, nioSSL, nioHTTP1
        ]),
    tests(
        "Protocols/ZulipPushTests",
        [
            "PushModel", "PushTesting", "DeliveryTesting", "ZulipPush", "SealbellKit", "Primitives",
            "WireFormats",
            "Delivery",
            "HTTP2Client", "APNs", "FCM", "MemoryStore", "AtRest"
        ]),
    tests(
        "Protocols/NextcloudPushTests",
        [
            "PushModel", "PushTesting", "DeliveryTesting", "NextcloudPush", "Primitives", "RSAKeys",
            "WireFormats", "Delivery"
        ]),
    tests(
        "Protocols/SessionPushTests",
        [
            "PushModel", "PushTesting", "DeliveryTesting", "SessionPush", "Primitives", "EdwardsKeys",
            "WireFormats", "Delivery"
        ]),
    tests(
        "Ingress/SwarmIngressTests",
        [
            "PushModel", "PushTesting", "Dialling", "DialTesting", "DeliveryTesting", "SwarmIngress",
            "SessionPush", "EdwardsKeys", "WireFormats", "Delivery", "Simulators", "MessageSockets",
            "Primitives", metrics
        ]),
    tests(
        "Ingress/WakuIngressTests",
        [
            "PushModel", "PushTesting", "WakuIngress", "StatusPush", "WireFormats", "Delivery", "Simulators",
            "WebClient", metrics, nioPosix
        ]),
    tests(
        "Protocols/StatusPushTests",
        [
            "PushModel", "PushTesting", "DeliveryTesting", "StatusPush", "Primitives", "Secp256k1Keys",
            "WireFormats", "Delivery"
        ]),
    tests(
        "Ingress/HTTPIngressTests",
        [
            "PushModel", "PushTesting", "Dialling", "DialTesting", "HTTPIngress", "AdminIngress", "WebClient",
            "WireFormats", "Delivery", "Simulators", nioCore, nioEmbedded, nioHTTP1, nioPosix, nioSSL, crypto,
            metrics, lifecycle
        ]),
    tests(
        "Relay/SealbellTests",
        [
            "RelayProgram", "sealbell", "sealbell-bench", "PushModel", "Primitives", "Secp256k1Keys",
            "Dialling", "DialTesting", "PushTesting", "DeliveryTesting", "EventLoops", "Simulators",
            "WireFormats", "SealbellKit", "ZulipPush", "OriginServer",
            "SQLiteStore", "PostgresStore", "AtRest", "AdminIngress", "Delivery", "WebClient",
            "MarmotPush", "MarmotPublishing", "HTTPIngress", "HTTP2Client", "NextcloudPush", "RSAKeys",
            "NostrIngress", "WebSocket", "SessionPush", "SwarmIngress", "EdwardsKeys", "StatusPush",
            "WakuIngress", lifecycle, logging, metrics, arguments, nioCore, nioPosix, nioHTTP1, nioSSL,
            crypto,
            cryptoExtras
        ]),
    tests(
        "Protocols/MarmotPushTests",
        [
            "PushModel", "PushTesting", "DeliveryTesting", "MarmotPush", "Primitives", "Secp256k1Keys",
            "WireFormats", "Delivery", "HTTP2Client", "APNs", "FCM"
        ]),
    tests(
        "Foundations/WebSocketTests",
        [
            "PushModel", "PushTesting", "Dialling", "DialTesting", "EventLoops", "WebSocket", "Simulators",
            nioCore, nioPosix, nioSSL, nioHTTP1
        ]),
    tests(
        "Ingress/NostrIngressTests",
        [
            "PushModel", "PushTesting", "EventLoops", "NostrIngress", "MarmotPush", "MarmotPublishing",
            "WebSocket", "Simulators", "Secp256k1Keys", "WireFormats", "Delivery", "MemoryStore",
            "PostgresStore", "AtRest", nioCore, nioPosix, metrics
        ]),
    tests(
        "Publishing/MarmotPublishingTests",
        [
            "PushModel", "PushTesting", "Dialling", "DialTesting", "EventLoops", "MarmotPublishing",
            "MarmotPush", "WebSocket", "Simulators", "Secp256k1Keys", nioPosix
        ]),
    tests("Proving/SimulationTests", ["Simulation"]),
    tests(
        "Proving/BenchTests",
        [
            "Bench", "PushModel", "PushTesting", "WireFormats", "NextcloudPush", "RSAKeys", "Simulators",
            "StatusPush", nioCore, nioPosix
        ]),
    tests("TidyTests")
]

// Fuzzing wants its own flags and its own main function, so its program exists only when it is asked for
// (scripts/fuzz). Whatever stands below it is instrumented too, NIO for the sockets' sake.
let fuzzing: [Target] =
    Context.environment["SEALBELL_FUZZ"] == nil
    ? []
    : [
        .target(name: "FuzzCounters", path: "Fuzz/Counters"),
        .executableTarget(
            name: "Fuzz",
            dependencies: [
                "FuzzCounters",
                "PushModel", "Primitives", "Secp256k1Keys", "WireFormats", "SealbellKit", "ZulipPush",
                "MarmotPush", "NextcloudPush", "RSAKeys", "SessionPush", "EdwardsKeys", "StatusPush",
                "WebSocket",
                "Delivery", "HTTPIngress", "NostrIngress", "SwarmIngress", "WakuIngress", "MessageSockets",
                nioCore, nioEmbedded
            ],
            path: "Fuzz", exclude: ["Inputs", "README.md", "Counters"],
            swiftSettings: strict + [.unsafeFlags(["-parse-as-library", "-sanitize=fuzzer,address"])],
            // Fuzz/Counters says why.
            linkerSettings: [
                .unsafeFlags([
                    "-sanitize=fuzzer,address", "-Xlinker", "--wrap=__sanitizer_cov_8bit_counters_init",
                    "-Xlinker", "--wrap=__sanitizer_cov_pcs_init", "-Xlinker", "--wrap=LLVMFuzzerTestOneInput"
                ])
            ])
    ]

// Exact versions where this package is the one that is built; ranges where an app depends on it
// (docs/decisions/0067-pins-at-home.md). SwiftPM reads a dependency's manifest first out of its repository, where
// the directory is the root, and then from its checkout.
let isDependency =
    Context.packageDirectory == "/" || Context.packageDirectory.contains("/checkouts/")
    || Context.environment["SEALBELL_RANGES"] != nil

func dependency(_ url: String, _ version: Version) -> Package.Dependency {
    isDependency ? .package(url: url, from: version) : .package(url: url, exact: version)
}

let package = Package(
    name: "Sealbell",
    platforms: [.iOS(.v18), .macOS(.v15)],
    products: [
        .executable(name: "sealbell", targets: ["sealbell"]),
        .library(name: "SealbellKit", targets: ["SealbellKit"]),
        .library(name: "ZulipPush", targets: ["ZulipPush"]),
        .library(name: "MarmotPush", targets: ["MarmotPush"]),
        .library(name: "MarmotPublishing", targets: ["MarmotPublishing"]),
        .library(name: "NextcloudPush", targets: ["NextcloudPush"]),
        .library(name: "SessionPush", targets: ["SessionPush"]),
        .library(name: "StatusPush", targets: ["StatusPush"]),
        .library(name: "Simulators", targets: ["Simulators"])
    ],
    dependencies: [
        dependency("https://github.com/apple/swift-nio", "2.101.2"),
        dependency("https://github.com/apple/swift-nio-ssl", "2.37.6"),
        dependency("https://github.com/apple/swift-nio-extras", "1.35.2"),
        dependency("https://github.com/swift-server/async-http-client", "1.37.0"),
        dependency("https://github.com/apple/swift-crypto", "4.5.2"),
        dependency("https://github.com/groue/GRDB.swift", "7.10.0"),
        dependency("https://github.com/swift-server/swift-service-lifecycle", "2.13.0"),
        dependency("https://github.com/apple/swift-argument-parser", "1.8.2"),
        dependency("https://github.com/apple/swift-metrics", "2.13.0"),
        dependency("https://github.com/apple/swift-log", "1.16.2"),
        dependency("https://github.com/jpsim/Yams", "6.2.2")
    ] + kitPackages.map { dependency($0.url, $0.version) },
    targets: kitLibraries + foundations + ownC + rooms + publishing + doors + origin + application + suites
        + fuzzing,
    swiftLanguageModes: [.v6]
)
