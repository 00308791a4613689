// swift-tools-version:6.2
import PackageDescription

// What an app writes: the package, a product, nothing else. Instead of the path it names a URL and a version.
let package = Package(
    name: "Examples",
    platforms: [.iOS(.v18), .macOS(.v15)],
    dependencies: [.package(name: "Sealbell", path: "..")],
    targets: [
        .executableTarget(
            name: "ZulipApp", dependencies: [.product(name: "ZulipPush", package: "Sealbell")]),
        .executableTarget(
            name: "MarmotApp",
            dependencies: [
                .product(name: "MarmotPublishing", package: "Sealbell"),
                .product(name: "Simulators", package: "Sealbell")
            ]),
        .executableTarget(
            name: "NextcloudApp", dependencies: [.product(name: "NextcloudPush", package: "Sealbell")]),
        .executableTarget(
            name: "SessionApp", dependencies: [.product(name: "SessionPush", package: "Sealbell")]),
        .executableTarget(
            name: "StatusApp", dependencies: [.product(name: "StatusPush", package: "Sealbell")])
    ],
    swiftLanguageModes: [.v6]
)
