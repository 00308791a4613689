// swift-tools-version:6.2
import PackageDescription

// What an app builds, and nothing that only a relay needs. In Sealbell's repository the manifest of the relay
// names the same folders, so that the relay and all tests are one package with them; a tidy test compares the two.

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

let crypto = product("Crypto", "swift-crypto")
let cryptoExtras = product("CryptoExtras", "swift-crypto")

let kitSources = "Sources"

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

// A target is called as the last part of its path.
func kit(_ path: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(
        name: String(path.split(separator: "/").last ?? ""), dependencies: dependencies,
        path: "\(kitSources)/\(path)", swiftSettings: strict)
}

let package = Package(
    name: "SealbellKit",
    platforms: [.iOS(.v18), .macOS(.v15)],
    products: [
        .library(name: "SealbellKit", targets: ["SealbellKit"]),
        .library(name: "ZulipPush", targets: ["ZulipPush"]),
        .library(name: "MarmotPush", targets: ["MarmotPush"]),
        .library(name: "NextcloudPush", targets: ["NextcloudPush"]),
        .library(name: "SessionPush", targets: ["SessionPush"]),
        .library(name: "StatusPush", targets: ["StatusPush"])
    ],
    dependencies: [.package(url: "https://github.com/apple/swift-crypto", from: "4.5.2")]
        + kitPackages.map { .package(url: $0.url, from: $0.version) },
    targets: kitLibraries + [
        kit("Foundations/PushModel"),
        kit("Foundations/Primitives", ["PushModel", sodium, crypto]),
        kit("Foundations/WireFormats", ["PushModel"]),
        kit("Foundations/SealbellKit", ["PushModel", "Primitives", "WireFormats"]),
        kit("Foundations/EdwardsKeys", ["PushModel", "Primitives", sodium]),
        kit("Foundations/Secp256k1Keys", ["PushModel", "Primitives", secp256k1]),
        kit("Foundations/RSAKeys", ["PushModel", "WireFormats", crypto, cryptoExtras]),
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
        kit("Protocols/ZulipPush", ["PushModel", "Primitives", "WireFormats", "SealbellKit"])
    ],
    swiftLanguageModes: [.v6]
)
