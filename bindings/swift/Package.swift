// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "HoldfastKit",
  platforms: [.macOS(.v14), .iOS(.v18)],
  products: [.library(name: "HoldfastKit", targets: ["HoldfastKit"])],
  dependencies: [.package(name: "holdfast", path: "../..")],
  targets: [
    .target(
      name: "HoldfastKit",
      dependencies: [
        .product(name: "CHoldfast", package: "holdfast"),
        .product(name: "Holdfast", package: "holdfast"),
      ]),
    .executableTarget(name: "story", dependencies: ["HoldfastKit"], path: "Tests/Story"),
    .testTarget(name: "HoldfastKitTests", dependencies: ["HoldfastKit", "story"]),
  ]
)
