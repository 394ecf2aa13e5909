// swift-tools-version: 6.2
import PackageDescription

// The tests of HoldfastKit, which is a product of the project's own package, and the example app.
let kit = Target.Dependency.product(name: "HoldfastKit", package: "holdfast")

func program(_ name: String, _ path: String) -> Target {
  let c = Target.Dependency.product(name: "CHoldfast", package: "holdfast")
  return .executableTarget(name: name, dependencies: [kit, c], path: path)
}

/// Tests/run.py writes the programs of README.md into these folders.
let readme =
  Context.environment["HOLDFAST_README"] == nil
  ? [] : ["first", "offline"].map { program("readme-\($0)", ".build-readme/\($0)") }

let package = Package(
  name: "HoldfastKitTests",
  platforms: [.macOS(.v14), .iOS(.v18)],
  dependencies: [.package(name: "holdfast", path: "../..")],
  targets: [
    program("visits", "Example"),
    program("story", "Tests/Story"),
    program("calls", "Tests/Calls"),
    .testTarget(name: "HoldfastKitTests", dependencies: [kit]),
  ] + readme
)
