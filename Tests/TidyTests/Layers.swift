/// Who may import whom (house rule: arrows point down only, and neighbours of layer 2 never see each other).
enum Layers {
    /// 0 nouns and ports, 1 ciphers and formats and what providers share, 2 protocols, delivery, providers and
    /// engines, 3 transports and what stands beside the relay, 4 the executable.
    static let level: [String: Int] = [
        "PushModel": 0,
        "CNghttp2": 1, "CPostgres": 1, "CSodium": 1, "CWiping": 1, "CSecp256k1": 1, "CResolver": 1,
        "WebSocket": 1,
        "Primitives": 1,
        "WireFormats": 1, "AtRest": 1, "EventLoops": 1,
        "HTTP2Client": 1,
        "ZulipPush": 2, "MarmotPush": 2, "Delivery": 2, "APNs": 2, "FCM": 2, "WebClient": 2, "MemoryStore": 2,
        "SQLiteStore": 2, "PostgresStore": 2,
        "HTTPIngress": 3, "NostrIngress": 3, "AdminIngress": 3, "Simulators": 3, "Bench": 3, "PushTesting": 3,
        "Simulation": 3, "RelayProgram": 4, "sealbell": 5, "sealbell-bench": 5, "sealbell-simulate": 4
    ]

    /// Modules of the toolchain that any target may import. Foundation is not among them.
    static let toolchain: Set<String> = ["Swift", "Synchronization", "Glibc", "Musl", "Darwin", "Dispatch"]

    private static let nio: Set<String> = [
        "NIO", "NIOCore", "NIOPosix", "NIOHTTP1", "NIOSSL", "NIOTLS", "NIOExtras", "NIOConcurrencyHelpers",
        "NIOFoundationCompat"
    ]

    /// What each target may import beside the toolchain's modules.
    static let allowed: [String: Set<String>] = [
        "PushModel": [],
        "Primitives": ["PushModel", "CSodium", "CSecp256k1", "Crypto"],
        "WireFormats": ["PushModel"],
        "AtRest": ["PushModel", "Primitives", "WireFormats"],
        "MarmotPush": ["PushModel", "Primitives", "WireFormats"],
        "WebSocket": nio.union(["PushModel", "WireFormats", "EventLoops", "NIOWebSocket", "Crypto"]),
        "NostrIngress": nio.union([
            "PushModel", "WireFormats", "Primitives", "EventLoops", "WebSocket", "MarmotPush", "Delivery",
            "CoreMetrics", "ServiceLifecycle", "Foundation"
        ]),
        "ZulipPush": ["PushModel", "Primitives", "WireFormats"],
        "Delivery": ["PushModel", "ServiceLifecycle", "CoreMetrics"],
        "EventLoops": nio,
        "HTTP2Client": nio.union([
            "PushModel", "WireFormats", "EventLoops", "CNghttp2", "Foundation"
        ]),
        "WebClient": nio.union([
            "PushModel", "WireFormats", "CWiping", "CResolver", "AsyncHTTPClient", "Foundation"
        ]),
        "APNs": nio.union(["PushModel", "WireFormats", "HTTP2Client", "Crypto", "Foundation"]),
        "FCM": nio.union([
            "PushModel", "WireFormats", "HTTP2Client", "Crypto", "CryptoExtras", "Foundation"
        ]),
        "MemoryStore": ["PushModel"],
        "SQLiteStore": ["PushModel", "GRDB", "GRDBSQLite", "ServiceLifecycle", "Foundation"],
        "PostgresStore": ["PushModel", "CPostgres", "ServiceLifecycle", "Foundation"],
        "HTTPIngress": nio.union([
            "PushModel", "WireFormats", "EventLoops", "Delivery", "CoreMetrics",
            "ServiceLifecycle", "Foundation"
        ]),
        "AdminIngress": nio.union([
            "PushModel", "WireFormats", "Delivery", "HTTPIngress", "CoreMetrics", "Crypto",
            "ServiceLifecycle",
            "Foundation"
        ]),
        "Simulators": nio.union([
            "PushModel", "Primitives", "WireFormats", "CNghttp2", "WebSocket", "EventLoops", "MarmotPush",
            "NIOWebSocket", "Crypto", "CryptoExtras", "ServiceLifecycle", "Foundation"
        ]),
        "Bench": nio.union([
            "PushModel", "WireFormats", "Primitives", "AtRest", "HTTP2Client", "APNs", "FCM", "ZulipPush",
            // libsecp256k1 itself: the bare arithmetic that ours is measured against.
            "MarmotPush", "CSecp256k1", "Delivery", "SQLiteStore", "Simulators", "PushTesting", "Crypto",
            "CryptoExtras", "ServiceLifecycle", "Foundation"
        ]),
        "Simulation": [
            "PushModel", "PushTesting", "AtRest", "Delivery", "MemoryStore", "SQLiteStore", "GRDBSQLite",
            "ServiceLifecycle", "Logging", "Foundation", "Dispatch"
        ],
        "sealbell-simulate": ["Simulation", "ArgumentParser", "Foundation"],
        "PushTesting": ["PushModel", "WireFormats", "Primitives", "Foundation", "Testing"],
        "sealbell": ["RelayProgram"],
        "sealbell-bench": [
            "RelayProgram", "Bench", "PushModel", "PushTesting", "WireFormats", "ArgumentParser", "Foundation"
        ],
        "RelayProgram": nio.union(level.keys).subtracting(["Bench", "PushTesting", "Simulation"]).union([
            "ServiceLifecycle", "UnixSignals", "ArgumentParser", "Logging", "CoreMetrics", "Yams", "Crypto",
            "CryptoExtras",
            "Foundation", "FoundationEssentials"
        ])
    ]

    /// Targets that do no I/O and must build for a phone.
    static let protocols: Set<String> = ["ZulipPush", "MarmotPush"]

    /// Packages that must never stand below a protocol target.
    static func isServerOnly(_ product: String) -> Bool {
        product.hasPrefix("NIO") || product.hasPrefix("Hummingbird")
            || ["GRDB", "AsyncHTTPClient", "ServiceLifecycle", "Logging", "CoreMetrics", "Metrics"]
                .contains(product)
    }
}
