// swift-tools-version: 6.2
import PackageDescription

// The example app. It depends on the project's package, as any app does.
let package = Package(
  name: "Visits",
  platforms: [.macOS(.v14), .iOS(.v18)],
  dependencies: [.package(name: "holdfast", path: "../..")],
  targets: [
    .executableTarget(
      name: "visits", dependencies: [.product(name: "HoldfastKit", package: "holdfast")],
      path: "Example")
  ]
)
