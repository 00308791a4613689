// swift-tools-version:6.2
import PackageDescription

// A Marmot app that reaches its servers itself, and plays a relay: both stand on swift-nio, so they are products
// of the repository's package and not of the kit's. One app never takes both packages, because their targets have
// the same names; hence a package apart from the other examples.
let package = Package(
    name: "PublishingExamples",
    platforms: [.iOS(.v18), .macOS(.v15)],
    dependencies: [.package(name: "Sealbell", path: "../..")],
    targets: [
        // The other examples' folder, by a link.
        .target(name: "AppSupport", dependencies: [.product(name: "SealbellKit", package: "Sealbell")]),
        .executableTarget(
            name: "MarmotApp",
            dependencies: [
                "AppSupport",
                .product(name: "MarmotPublishing", package: "Sealbell"),
                .product(name: "Simulators", package: "Sealbell")
            ])
    ],
    swiftLanguageModes: [.v6]
)
