public import Base
import Vault

/// A schema whose names are the defaults of the configuration.
public enum Template: String, CaseIterable, Sendable {
  /// This project's example backend.
  case volunteers
}

/// The server: its address, and the names of its tables, columns and functions.
public final class Backend {
  /// The base URL, without a slash at the end.
  public let url: String
  /// The public key of the project. It identifies the project, not the user, so it is never sent as
  /// `Authorization`.
  public let apiKey: String
  public let kinds: [QueueKind]
  /// Empty in an app without organisations.
  public let membershipsTable: String
  /// Empty in an app without contacts.
  public let contactsTable: String
  /// The columns of a contact that are cached, with `id` and `org_id`.
  public let contactColumns: [String]
  /// The columns of a contact that are never cached.
  public let needsNetwork: [String]
  /// Empty in an app without figures.
  public let summaryFunction: String
  /// The kind of the queued items that the summary counts.
  public let summaryKind: String

  /// The sections of the configuration that can be null: the app has no such thing.
  public enum Section: String, Sendable { case memberships, contacts, summary }

  /// The host of the URL, with its port.
  public var host: String {
    Array(url.utf8).withUnsafeBytes {
      String(decoding: URLParts($0)?.authority ?? $0[..<0], as: UTF8.self)
    }
  }

  public var hasOrganisations: Bool { has(.memberships) }

  public func has(_ section: Section) -> Bool {
    switch section {
    case .memberships: !membershipsTable.isEmpty
    case .contacts: !contactsTable.isEmpty
    case .summary: !summaryFunction.isEmpty
    }
  }

  /// Throws `config.not_configured` for a call whose section is null.
  public func require(_ section: Section) throws(Failure) {
    guard !has(section) else { return }
    let name = section.rawValue
    throw Failure(
      .configNotConfigured, "\"\(name)\" is null in the configuration", field: "/backend/" + name)
  }

  public func kind(_ name: String) -> QueueKind? { kinds.first { $0.name == name } }

  /// The kind that the member `kind` of a request names. Throws `queue.unknown_kind`.
  public func queueKind(in fields: Fields) throws(Failure) -> QueueKind {
    let name = try fields.string("kind", maximum: 64)
    if let kind = kind(name) { return kind }
    let advice = Suggestion.advice(name, among: kinds.map { $0.name }, in: "backend.queue")
    throw Failure(.queueUnknownKind, "no such kind; " + advice, field: "/kind")
  }

  /// The members `backend` and `template` of the config.
  public static func read(in config: Fields) throws(Failure) -> Backend {
    let template = try config.choice(ifPresent: "template", Template.self)
    let value = try config.required("backend")
    let known: [StaticCString] = [
      "url", "api_key", "allow_insecure", "queue", "memberships", "contacts", "summary",
    ]
    if value.kind == .object, let unknown = value.firstMember(notAmong: known),
      let ours = name(of: unknown)
    {
      throw Fields.unknown(unknown, ours, at: config.pointer("backend"))
    }
    return try Backend(try config.fields("backend", known: known), template)
  }

  /// The field that other clients of Supabase, and its pages, call so.
  private static func name(of field: String) -> String? {
    let keys = ["anon_key", "anonKey", "publishable_key", "supabase_key", "supabaseKey", "key"]
    if keys.contains(field) { return "api_key" }
    return ["supabase_url", "supabaseUrl", "base_url"].contains(field) ? "url" : nil
  }

  /// A section that is absent is null without a template.
  private init(_ fields: Fields, _ template: Template?) throws(Failure) {
    func has(_ section: StaticCString) -> Bool {
      !fields.isNull(section) && (template != nil || fields.optional(section) != nil)
    }
    let memberships = try fields.fields(ifPresent: "memberships", known: ["table"])
    let contacts = try fields.fields(
      ifPresent: "contacts", known: ["table", "columns", "needs_network"])
    let summary = try fields.fields(ifPresent: "summary", known: ["function", "kind"])
    let hasOrg = has("memberships")
    (contactColumns, needsNetwork) = try Backend.readColumns(contacts, template, hasOrg: hasOrg)
    url = try Backend.readURL(fields)
    apiKey = try Backend.readKey(fields)
    kinds = try QueueKind.readAll(fields, template, hasOrg: hasOrg)
    membershipsTable =
      hasOrg ? try Identifier.read("table", in: memberships, default: "memberships") : ""
    contactsTable =
      has("contacts") ? try Identifier.read("table", in: contacts, default: "contacts") : ""
    summaryFunction =
      has("summary")
      ? try Identifier.read("function", in: summary, default: "activity_summary") : ""
    summaryKind = try Identifier.read("kind", in: summary, default: "activity")
  }

  /// Reads the base URL: scheme and host, optionally port and path. Every request carries the key or
  /// a token, so plain HTTP stays on this machine unless the configuration allows it.
  private static func readURL(_ fields: Fields) throws(Failure) -> String {
    let url = Array(try fields.string("url", maximum: 2048).utf8)
    guard url.withUnsafeBytes({ isPlain($0) }) else {
      throw fields.invalid(
        "url", "http(s)://host is expected, without user, query or fragment")
    }
    let mayBeInsecure = try fields.bool(ifPresent: "allow_insecure") ?? false
    guard
      mayBeInsecure || url.withUnsafeBytes({ isEncrypted($0) || URLParts($0)?.isLoopback == true })
    else {
      throw fields.invalid(
        "url", "https is expected; \"allow_insecure\" allows plain http beyond this machine")
    }
    var end = url.count
    while url[end - 1] == UInt8(ascii: "/") { end -= 1 }
    let base = url[..<end]
    if let service = services.first(where: { base.suffix($0.count).elementsEqual($0.bytes) }) {
      let right = String(decoding: base.dropLast(service.count), as: UTF8.self)
      throw fields.invalid(
        "url",
        "the library adds \(service.string) itself; \"\(right)\" is expected")
    }
    return String(decoding: base, as: UTF8.self)
  }

  /// The paths of the services: a URL that ends with one is the address of a service. Neither a project
  /// nor a proxy has the services below it.
  private static var services: [StaticCString] {
    ["/rest/v1", "/auth/v1", "/storage/v1", "/functions/v1", "/realtime/v1", "/graphql/v1"]
  }

  private static func isPlain(_ url: UnsafeRawBufferPointer) -> Bool {
    guard let parts = URLParts(url), parts.hasHost, VisibleASCII.fills(url), parts.query == nil,
      parts.fragment == nil
    else { return false }
    let scheme = String(decoding: parts.scheme, as: UTF8.self)
    return (scheme == "https" || scheme == "http") && parts.path.allSatisfy { isPathPart($0) }
  }

  private static func isEncrypted(_ url: UnsafeRawBufferPointer) -> Bool {
    url.starts(with: "https:".utf8)
  }

  /// Whether a path may hold this byte (RFC 3986, section 3.3).
  private static func isPathPart(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "["),
      UInt8(ascii: "]"), UInt8(ascii: "^"), UInt8(ascii: "`"), UInt8(ascii: "{"),
      UInt8(ascii: "|"), UInt8(ascii: "}"):
      return false
    default: return true
    }
  }

  private static func readKey(_ fields: Fields) throws(Failure) -> String {
    let key = try fields.string("api_key")
    guard VisibleASCII.fills(key.utf8) else {
      throw fields.invalid("api_key", "visible ASCII characters are expected")
    }
    guard try !isSecret(key) else {
      throw fields.invalid("api_key", "a secret key bypasses all policies; use the public key")
    }
    return key
  }

  /// Whether the key is for servers alone: it bypasses row-level security, and an app cannot keep it
  /// secret. Supabase names such keys `sb_secret_...`; older ones are tokens of `service_role`.
  private static func isSecret(_ key: String) throws(Failure) -> Bool {
    if key.utf8.starts(with: "sb_secret_".utf8) { return true }
    let token = try SecretBytes.written(capacity: key.utf8.count, room: .heap) { room in
      room.copyBytes(from: key.utf8)
      return room.count
    }
    return try JWT.claims(of: token)?.string("role") == "service_role"
  }

  private static func readColumns(
    _ contacts: Fields?, _ template: Template?, hasOrg: Bool
  ) throws(Failure) -> (cached: [String], needsNetwork: [String]) {
    // Embedded Swift 6.3 takes one of two array literals for the other.
    var columns = ["name"]
    var needsNetwork: [String] = []
    if template == .volunteers {
      columns.append("municipality")
      columns.append("relation")
      needsNetwork.append("phone")
      needsNetwork.append("address")
      needsNetwork.append("national_id")
    }
    guard let contacts else { return (keyColumns(hasOrg) + columns, needsNetwork) }
    return try chosenColumns(
      contacts, columns,
      needsNetwork: try Identifier.readAll("needs_network", in: contacts) ?? needsNetwork,
      hasOrg: hasOrg)
  }

  /// The columns that every cached contact has.
  private static func keyColumns(_ hasOrg: Bool) -> [String] {
    // Embedded Swift 6.3 returns one of two array literals whatever the condition.
    var columns = ["id"]
    if hasOrg { columns.append("org_id") }
    return columns
  }

  /// The columns that the configuration chooses. A network-only column (also one that needs the network by
  /// default) must not be among the cached ones.
  private static func chosenColumns(
    _ contacts: Fields, _ standard: [String], needsNetwork: [String], hasOrg: Bool
  ) throws(Failure) -> (cached: [String], needsNetwork: [String]) {
    let listed = try Identifier.readAll("columns", in: contacts)
    let cached = listed ?? standard
    for (index, column) in cached.enumerated() where needsNetwork.contains(column) {
      let field = contacts.pointer(listed == nil ? "needs_network" : "columns")
      throw Failure(
        .requestInvalidValue, "\"\(column)\" cannot be cached and need the network",
        field: listed == nil ? field : "\(field)/\(index)")
    }
    for column in keyColumns(hasOrg) where needsNetwork.contains(column) {
      throw contacts.invalid("needs_network", "\"\(column)\" cannot need the network")
    }
    guard cached.contains("name") else {
      throw contacts.invalid("columns", "\"name\" is required: the search needs it")
    }
    return (keyColumns(hasOrg).filter { !cached.contains($0) } + cached, needsNetwork)
  }
}
