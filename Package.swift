// swift-tools-version: 6.2
import Foundation
import PackageDescription

// The trait "Embedded" builds the core in Embedded Swift: no Swift runtime in the library.
// Linker flags are in mk/library.mk and mk/embedded.mk.
let settings: [SwiftSetting] = [
  .enableExperimentalFeature("Embedded", .when(traits: ["Embedded"])),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .swiftLanguageMode(.v6),
]

/// glibc checks the sizes of buffers in C code that is optimised.
let checkedBuffers = CSetting.define("_FORTIFY_SOURCE", to: "3", .when(configuration: .release))

// On Apple's systems SQLite is the system's. libsodium and jansson are in a framework that bindings/apple/build.sh
// builds; until it is there, they come from where pkg-config finds them.
let framework = "build/apple/HoldfastLibraries.xcframework"
let hasFramework = FileManager.default.fileExists(
  atPath: "\(Context.packageDirectory)/\(framework)")

let libraries: [Target] =
  hasFramework
  ? [.binaryTarget(name: "HoldfastLibraries", path: framework), .systemLibrary(name: "CSQLite")]
  : [
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"])]),
    .systemLibrary(name: "CJansson", pkgConfig: "jansson", providers: [.apt(["libjansson-dev"])]),
  ]

/// The framework has the modules CSodium and CJansson.
func named(_ dependencies: [String]) -> [Target.Dependency] {
  dependencies.map { name in
    let isInFramework = hasFramework && ["CSodium", "CJansson"].contains(name)
    return .byName(name: isInFramework ? "HoldfastLibraries" : name)
  }
}

func core(_ name: String, on dependencies: [String]) -> Target {
  .target(name: name, dependencies: named(dependencies), swiftSettings: settings)
}

let testSettings: [SwiftSetting] = [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]

func tests(of name: String, on dependencies: [String] = []) -> Target {
  .testTarget(
    name: "\(name)Tests", dependencies: named([name, "TestSupport"] + dependencies),
    swiftSettings: testSettings)
}

/// A program that tests the rules; they must be fast, so it is built for release.
func program(_ name: String, on dependencies: [String], path: String) -> Target {
  .executableTarget(
    name: name, dependencies: named(dependencies), path: path, swiftSettings: testSettings)
}

let coreTests: [Target] = [
  tests(of: "Base", on: ["CPlatform", "CJansson"]),
  tests(of: "Vault", on: ["Base", "CPlatform", "CJansson"]),
  tests(of: "Store", on: ["Vault", "Base", "CSQLite"]),
  tests(of: "Policy", on: ["PolicyOracle", "Base"]),
  tests(of: "Supabase", on: ["Policy", "Vault", "Base"]),
  tests(of: "Engine", on: ["Base", "Policy", "Store", "Supabase", "Vault"]),
]

func kitProgram(_ name: String, _ path: String) -> Target {
  program(name, on: ["HoldfastKit", "CHoldfast"], path: path)
}

/// Tests/run.py of bindings/swift writes these programs: its README's, and the examples of the comments.
let written =
  Context.environment["HOLDFAST_README"] == nil
  ? []
  : ["first", "examples"].map {
    kitProgram("readme-\($0)", "bindings/swift/.build-readme/\($0)")
  }

// On Linux, HoldfastKit's tests have a stand-in for two modules of Apple's.
#if os(Linux)
  let apple = ["Security", "LocalAuthentication"]
#else
  let apple: [String] = []
#endif
let isKit = Context.environment["HOLDFAST_KIT"] != nil

let kitTests: [Target] =
  apple.map {
    .target(
      name: $0, dependencies: $0 == "Security" ? [] : ["Security"],
      path: "bindings/swift/Tests/Apple/\($0)", swiftSettings: testSettings)
  } + [
    kitProgram("visits", "examples/swift/Sources/Visits"),
    kitProgram("calls", "bindings/swift/Tests/Calls"),
    .testTarget(
      name: "HoldfastKitTests", dependencies: named(["HoldfastKit", "CHoldfast"] + apple),
      path: "bindings/swift/Tests/HoldfastKitTests", swiftSettings: testSettings),
  ] + written

let package = Package(
  name: "Holdfast",
  platforms: [.macOS(.v14), .iOS(.v18)],
  products: [
    // For apps in Swift: typed calls and news, the network and key stores (bindings/swift).
    .library(name: "HoldfastKit", targets: ["HoldfastKit"]),
    // For other packages: the functions, and the C module that declares them.
    .library(name: "Holdfast", targets: ["Holdfast"]),
    .library(name: "CHoldfast", targets: ["CHoldfast"]),
    .library(name: "HoldfastStatic", type: .static, targets: ["Holdfast"]),
    .library(name: "HoldfastHTTPStatic", type: .static, targets: ["HoldfastHTTP", "HoldfastKeys"]),
  ],
  traits: ["Embedded"],
  targets: libraries + [
    .systemLibrary(name: "CHoldfast", path: "include"),
    .target(
      name: "CPlatform",
      cSettings: [.define("HOLDFAST_EMBEDDED", .when(traits: ["Embedded"])), checkedBuffers],
      linkerSettings: [
        .linkedLibrary("m", .when(platforms: [.linux])),
        .linkedLibrary("sqlite3", .when(platforms: [.macOS, .iOS])),
      ]),
    core("Base", on: ["CPlatform", "CJansson"]),
    core("Vault", on: ["Base", "CSodium"]),
    core("Store", on: ["Vault", "CSQLite"]),
    core("Policy", on: ["Base"]),
    core("Supabase", on: ["Policy", "Vault"]),
    core("Engine", on: ["Store", "Policy", "Supabase"]),
    // The exported function of each operation. No Swift imports it.
    .target(
      name: "COperations", dependencies: ["CHoldfast"], publicHeadersPath: ".",
      cSettings: [.headerSearchPath("../../include"), checkedBuffers]),
    core("Holdfast", on: ["Engine", "CHoldfast", "COperations"]),
    .target(
      name: "HoldfastKit", dependencies: named(["CHoldfast", "Holdfast"] + (isKit ? apple : [])),
      path: "bindings/swift/Sources/HoldfastKit", swiftSettings: [.swiftLanguageMode(.v6)]),
    .target(
      name: "HoldfastKeys", dependencies: ["CHoldfast"],
      cSettings: [.headerSearchPath("../../include"), checkedBuffers]),
    .target(
      name: "HoldfastHTTP", dependencies: ["CHoldfast", "HoldfastKeys"],
      cSettings: [.headerSearchPath("../../include"), checkedBuffers]),
    .target(
      name: "TestSupport", dependencies: ["Base"], path: "Tests/TestSupport",
      swiftSettings: testSettings),
    .target(
      name: "PolicyOracle", dependencies: ["Policy"], path: "Tests/PolicyOracle",
      swiftSettings: testSettings),
    program("situations", on: ["PolicyOracle", "Policy"], path: "Tests/situations"),
    program("fleet", on: ["Policy"], path: "Tests/fleet/Sources"),
  ]
    // SwiftPM builds all tests of a package as one program. HOLDFAST_KIT=1 builds HoldfastKit's instead of the core's,
    // from the same objects of the core.
    + (isKit ? kitTests : coreTests)
)
