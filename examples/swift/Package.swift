// swift-tools-version: 6.2
import PackageDescription

// In your own app: .package(url: "https://…/holdfast", from: "0.2.0")
let package = Package(
  name: "Visits",
  platforms: [.macOS(.v14), .iOS(.v18)],
  dependencies: [.package(name: "holdfast", path: "../..")],
  targets: [
    .executableTarget(
      name: "Visits", dependencies: [.product(name: "HoldfastKit", package: "holdfast")])
  ]
)
