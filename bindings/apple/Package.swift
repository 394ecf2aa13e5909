// swift-tools-version: 6.0
import PackageDescription

// build.sh puts this file beside Holdfast.xcframework: the functions of holdfast.h, for apps that do not build the core.
let package = Package(
  name: "Holdfast",
  platforms: [.macOS(.v14), .iOS(.v18)],
  products: [.library(name: "Holdfast", targets: ["Holdfast"])],
  targets: [.binaryTarget(name: "Holdfast", path: "Holdfast.xcframework")]
)
