public import Base
import CPlatform
public import Policy
import Store
public import Supabase

/// What a role may open.
public struct RoleRoutes {
  public var role: String
  public var home: String
  public var screens: [String]
}

/// The limits in `policy`, in milliseconds.
public struct Limits {
  public enum Biometric: String, CaseIterable, Sendable { case required, preferred, off }

  public enum LockOnBackground: String, CaseIterable, Sendable {
    case afterTimeout = "after_timeout"
    case atOnce = "at_once"
  }

  public var sessionWindowMS: Int64 = 43_200_000
  public var backgroundTimeoutMS: Int64 = 300_000
  public var offlineLimitMS: Int64 = 1_209_600_000
  public var guardTimeoutMS: Int64 = 2500
  public var refreshMarginMS: Int64 = 90_000
  public var biometric: Biometric = .required
  /// How often contacts and summary are pulled while the app is used.
  public var pullIntervalMS: Int64 = 900_000
  /// How often all cached ids are compared with the server's.
  public var reconcileIntervalMS: Int64 = 86_400_000
  /// How many stored items are remembered, and for how long.
  public var storedItems: Int64 = 10_000
  public var storedItemsMS: Int64 = 2_592_000_000
  /// Choosing another organisation erases the cache of the one before.
  public var eraseOnSwitch = false
  /// The session key is erased while the app is off the screen.
  public var lockOnBackground: LockOnBackground = .afterTimeout
}

/// Who uses a handle.
public enum Role: String, CaseIterable, Sendable {
  /// Somebody looks at the screen.
  case app
  /// Nobody does: it sends what is queued, for instance in the background.
  case worker
}

/// The configuration of `holdfast_open`. Unknown fields and wrong types are refused.
public final class Configuration {
  public private(set) var dataFolder: String
  public let backend: Backend
  public let methods: [AuthMethod]
  /// Where a browser returns; not nil if a method signs in there.
  public let redirectURL: String?
  /// Empty: every role opens every screen, and begins at `/`.
  public let routes: [RoleRoutes]
  public let limits: Limits
  public let language: Language
  public let clock: Clock.Kind
  public let role: Role
  let isDevelopment: Bool
  /// The configuration asks for the built-in key store.
  public let usesKeyFiles: Bool

  @export(interface) public init(_ config: JSON) throws(Failure) {
    let fields = try Fields(
      config,
      known: [
        "data_dir", "backend", "auth_methods", "redirect_url", "routes", "policy", "locale",
        "keystore", "clock", "role", "template", "development",
      ])
    isDevelopment = try fields.bool(ifPresent: "development") ?? false
    usesKeyFiles = try Configuration.readKeyStore(fields) || isDevelopment
    methods = try AuthMethod.readAll(fields)
    let folder = try fields.string("data_dir")
    if folder.utf8.contains(0) { throw fields.invalid("data_dir", "a path is expected") }
    if folder.utf8.first == UInt8(ascii: "~") {
      throw fields.invalid(
        "data_dir", "only a shell replaces ~: write the path in full, or ./~ for such a name")
    }
    dataFolder = folder
    backend = try Backend.read(in: fields)
    redirectURL = try RedirectURL.read(fields, for: methods)
    routes = try Configuration.readRoutes(fields, backend)
    limits = try Configuration.readLimits(fields, isDevelopment: isDevelopment)
    language = try Configuration.readLanguage(fields)
    clock = try fields.choice(ifPresent: "clock", Clock.Kind.self) ?? .system
    role = try fields.choice(ifPresent: "role", Role.self) ?? .app
  }

  /// Whether the configuration names the built-in key files.
  private static func readKeyStore(_ config: Fields) throws(Failure) -> Bool {
    guard let fields = try config.fields(ifPresent: "keystore", known: ["kind"]) else {
      return false
    }
    guard try fields.string("kind") == "file" else {
      throw fields.invalid(
        "kind", "file is expected; host and secret_service are the driver's, holdfast_http.h")
    }
    return true
  }

  /// The host passes a key store, or the configuration names one; not both. The built-in key files must
  /// be named, because the keys lie beside the data, and they cannot ask for the user's presence.
  func check(hasKeyStore: Bool) throws(Failure) {
    if usesKeyFiles, hasKeyStore {
      throw Failure(
        .requestInvalidValue,
        "a key store was passed: leave out \"keystore\" and \"development\"",
        field: "/keystore/kind")
    }
    if !usesKeyFiles, !hasKeyStore {
      throw Failure(
        .requestMissingField,
        "pass a key store; \"development\":true keeps key files beside the data, for a first try",
        field: "/keystore")
    }
    if usesKeyFiles, limits.biometric == .required {
      throw Failure(
        .requestInvalidValue, "key files ask for no presence: use \"preferred\" or \"off\"",
        field: "/policy/biometric")
    }
  }

  /// From now on the folder has its path without links: SQLite is to follow none.
  func resolveDataFolder() throws(Failure) {
    var problem: Int32 = 0
    let resolved = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4097) {
      room -> String? in
      problem = platform_real_path(dataFolder, room.baseAddress, room.count)
      return problem == 0 ? room.baseAddress.map { String(cString: $0) } : nil
    }
    guard let resolved else {
      throw Database.failure(ofSystem: Int(problem), "the data folder could not be found")
    }
    dataFolder = resolved
  }

  private static func readLimits(
    _ config: Fields, isDevelopment: Bool
  ) throws(Failure) -> Limits {
    var limits = Limits()
    if isDevelopment { limits.biometric = .off }
    let known: [StaticCString] = [
      "session_window_s", "background_timeout_s", "offline_limit_s", "guard_timeout_ms",
      "refresh_margin_s", "biometric", "pull_interval_s", "reconcile_interval_s",
      "erase_on_switch", "lock_on_background", "stored_items", "stored_items_s",
    ]
    guard let fields = try config.fields(ifPresent: "policy", known: known) else { return limits }
    func read(
      _ name: StaticCString, _ limit: inout Int64, in range: ClosedRange<Int64> = 0...315_360_000,
      unit: Int64 = 1000
    ) throws(Failure) {
      if let value = try fields.integer(ifPresent: name, in: range) { limit = value * unit }
    }
    try read("session_window_s", &limits.sessionWindowMS)
    try read("background_timeout_s", &limits.backgroundTimeoutMS)
    try read("offline_limit_s", &limits.offlineLimitMS)
    try read("guard_timeout_ms", &limits.guardTimeoutMS, in: 0...60_000, unit: 1)
    try read("refresh_margin_s", &limits.refreshMarginMS, in: 0...86_400)
    if let value = try fields.choice(ifPresent: "biometric", Limits.Biometric.self) {
      limits.biometric = value
    }
    try read("pull_interval_s", &limits.pullIntervalMS, in: 10...31_536_000)
    try read("reconcile_interval_s", &limits.reconcileIntervalMS, in: 10...31_536_000)
    try read("stored_items", &limits.storedItems, in: 0...1_000_000, unit: 1)
    try read("stored_items_s", &limits.storedItemsMS)
    if let value = try fields.choice(ifPresent: "lock_on_background", Limits.LockOnBackground.self)
    {
      limits.lockOnBackground = value
    }
    limits.eraseOnSwitch = try fields.bool(ifPresent: "erase_on_switch") ?? false
    return limits
  }

  /// The language of a BCP 47 tag such as nb-NO; some platforms write nb_NO.
  private static func readLanguage(_ config: Fields) throws(Failure) -> Language {
    guard let value = config.optional("locale") else { return .en }
    let tag = value.string ?? ""
    var language: [UInt8] = []
    for byte in tag.utf8 {
      if byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_") { break }
      language.append(ASCII.lowered(byte))
    }
    let name = String(decoding: language, as: UTF8.self)
    if let known = Language(listed: name) { return known }
    return try config.choice("locale", Language.self)
  }

  private static func readRoutes(
    _ config: Fields, _ backend: Backend
  ) throws(Failure) -> [RoleRoutes] {
    guard let value = config.optional("routes") else {
      let hasRoles = config.optional("template") != nil && backend.hasOrganisations
      return hasRoles ? volunteerRoutes : []
    }
    guard value.kind == .object else { throw config.wrongType("routes", "an object of roles") }
    guard value.count > 0 else {
      throw config.invalid("routes", "at least one role is expected; without routes: the default")
    }
    var result: [RoleRoutes] = []
    for (role, entry) in value.members {
      let at = config.pointer("routes") + "/" + JSONPointer.escape(role)
      let fields = try Fields(entry, at: at, known: ["home", "screens"])
      let home = try fields.string("home")
      let screens = try fields.strings(ifPresent: "screens") ?? ["*"]
      guard screens.contains(where: { RoutePolicy.allows(home, screens: [$0]) }) else {
        throw fields.invalid("home", "the home route is not among the screens")
      }
      result.append(RoleRoutes(role: role, home: home, screens: screens))
    }
    if !backend.hasOrganisations, !result.contains(where: { $0.role == soleRole }) {
      throw Failure(
        .requestMissingField, "without memberships every user has the role \"user\"",
        field: config.pointer("routes") + "/" + soleRole)
    }
    return result
  }

  /// The role of every user in an app without organisations.
  private static var soleRole: String { "user" }

  private static var volunteerRoutes: [RoleRoutes] {
    [
      RoleRoutes(
        role: "peer_mentor", home: "/mentor",
        screens: [
          "/mentor", "/mentor/*", "/contacts", "/contacts/*", "/activities", "/activities/*",
        ]),
      RoleRoutes(role: "coordinator", home: "/coordinator", screens: ["*"]),
      RoleRoutes(role: "org_admin", home: "/admin", screens: ["*"]),
    ]
  }

  /// What a role may open; nil if the configuration lists others.
  public func routes(for role: String) -> RoleRoutes? {
    if routes.isEmpty { return RoleRoutes(role: role, home: "/", screens: ["*"]) }
    return routes.first { $0.role == role }
  }

  /// What a user may open who works under this membership; in an app without organisations, under none.
  public func routes(under membership: Membership?) -> RoleRoutes? {
    guard backend.hasOrganisations else { return routes(for: Configuration.soleRole) }
    return membership.flatMap { routes(for: $0.role) }
  }
}
