// swift-tools-version: 6.2
import PackageDescription

// In your own app: .package(url: "https://…/holdfast", from: "0.2.0")
let package = Package(
  name: "Visit",
  dependencies: [.package(name: "holdfast", path: "../..")],
  targets: [
    .executableTarget(
      name: "Visit",
      dependencies: [
        .product(name: "CHoldfast", package: "holdfast"),
        .product(name: "Holdfast", package: "holdfast"),
      ])
  ]
)
