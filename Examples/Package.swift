// swift-tools-version:6.2
import PackageDescription

// What an app writes: the package, a product, nothing else. Instead of the path it names a URL and a version.
let package = Package(
    name: "Examples",
    platforms: [.iOS(.v18), .macOS(.v15)],
    dependencies: [
        .package(name: "Sealbell", path: ".."),
        // For one scene of AppPeak alone; apps need no package but Sealbell.
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2")
    ],
    targets: [
        // The loop and the network that all of them share.
        .target(name: "AppSupport", dependencies: [.product(name: "SealbellKit", package: "Sealbell")]),
        .executableTarget(
            name: "ZulipApp",
            dependencies: ["AppSupport", .product(name: "ZulipPush", package: "Sealbell")]),
        .executableTarget(
            name: "MarmotApp",
            dependencies: [
                "AppSupport",
                .product(name: "MarmotPublishing", package: "Sealbell"),
                .product(name: "Simulators", package: "Sealbell")
            ]),
        .executableTarget(
            name: "NextcloudApp",
            dependencies: ["AppSupport", .product(name: "NextcloudPush", package: "Sealbell")]),
        .executableTarget(
            name: "SessionApp",
            dependencies: ["AppSupport", .product(name: "SessionPush", package: "Sealbell")]),
        .executableTarget(
            name: "StatusApp",
            dependencies: ["AppSupport", .product(name: "StatusPush", package: "Sealbell")]),
        // What opening a push needs of memory.
        .executableTarget(
            name: "AppPeak",
            dependencies: [
                "AppSupport",
                .product(name: "ZulipPush", package: "Sealbell"),
                .product(name: "NextcloudPush", package: "Sealbell"),
                .product(name: "SessionPush", package: "Sealbell"),
                .product(name: "StatusPush", package: "Sealbell"),
                .product(name: "MarmotPush", package: "Sealbell"),
                .product(name: "Crypto", package: "swift-crypto")
            ])
    ],
    swiftLanguageModes: [.v6]
)
