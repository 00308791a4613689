// swift-tools-version:6.2
import PackageDescription

// What an app writes: the package, a product, nothing else. Its path is one into a clone or a submodule. What
// stands on more than the kit is a package apart: Publishing/.
let package = Package(
    name: "Examples",
    platforms: [.iOS(.v18), .macOS(.v15)],
    dependencies: [
        .package(path: "../Packages/SealbellKit"),
        // For one scene of AppPeak alone; apps need no package but the kit.
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2")
    ],
    targets: [
        // The loop and the network that all of them share.
        .target(name: "AppSupport", dependencies: [.product(name: "SealbellKit", package: "SealbellKit")]),
        .executableTarget(
            name: "ZulipApp",
            dependencies: ["AppSupport", .product(name: "ZulipPush", package: "SealbellKit")]),
        .executableTarget(
            name: "NextcloudApp",
            dependencies: ["AppSupport", .product(name: "NextcloudPush", package: "SealbellKit")]),
        .executableTarget(
            name: "SessionApp",
            dependencies: ["AppSupport", .product(name: "SessionPush", package: "SealbellKit")]),
        .executableTarget(
            name: "StatusApp",
            dependencies: ["AppSupport", .product(name: "StatusPush", package: "SealbellKit")]),
        // What opening a push needs of memory.
        .executableTarget(
            name: "AppPeak",
            dependencies: [
                "AppSupport",
                .product(name: "ZulipPush", package: "SealbellKit"),
                .product(name: "NextcloudPush", package: "SealbellKit"),
                .product(name: "SessionPush", package: "SealbellKit"),
                .product(name: "StatusPush", package: "SealbellKit"),
                .product(name: "MarmotPush", package: "SealbellKit"),
                .product(name: "Crypto", package: "swift-crypto")
            ])
    ],
    swiftLanguageModes: [.v6]
)
