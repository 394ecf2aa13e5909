import Base
import Policy
import Store
import Supabase

/// A request that the server refuses for its schema: a table, column or function is missing, or nobody
/// is granted its use. Or a list that the library cannot use as a whole, or the reason why no answer comes
/// from the service.
final class Problem {
  let subject: Problems.Subject
  /// The server's, that of a list, or that of the cause.
  let code: String
  /// When it was first seen, by the device's clock.
  let sinceMS: Int64
  /// Why no answer comes from the service.
  var cause: SignInCause?
  /// As far as the server or the configuration names them.
  var table: String?
  var column: String?
  /// How long access tokens live, if that is the problem.
  var lifetimeS: Int64?

  init(_ subject: Problems.Subject, _ code: String, _ now: Instant) {
    self.subject = subject
    self.code = code
    sinceMS = now.wallMS
    table = subject.table
  }

  static var lifetime: String { "token_lifetime" }
  static var silence: String { "nobody_asks" }

  func isSame(as other: Problem) -> Bool {
    code == other.code && table == other.table && column == other.column
  }

  var json: JSON {
    [
      "what": .string(subject.what.string), "kind": JSON(subject.kind),
      "purpose": .string(subject.purpose.rawValue), "table": JSON(table),
      "function": JSON(subject.function), "column": JSON(column), "code": .string(code),
      "since_ms": .int(sinceMS), "text": .string(describe()),
    ]
  }

  fileprivate func describe() -> String {
    guard let lifetimeS else { return text.string }
    return
      "Access tokens live \(lifetimeS) s. Set the lifetime of the project's tokens to 60 s or more."
  }

  /// What to do, for developers.
  private var text: StaticCString {
    if let cause { return Problem.text(cause) }
    return switch code {
    case "42P01", "PGRST205":
      """
      The server has no such table. Create it, name the right one in the configuration, or reload \
      the schema cache of the API.
      """
    case "42703", "PGRST204":
      """
      The table has no such column. Add it, name the right one in the configuration, or reload the \
      schema cache of the API.
      """
    case "42883", "PGRST202", "PGRST203":
      """
      The server has no such function with these parameters. Create it, name the right one in the \
      configuration, or reload the schema cache of the API.
      """
    case "PGRST200", "PGRST201":
      "The server finds no single foreign key between the tables."
    case "42501": "The signed-in user has no grant, or no policy lets these rows through."
    case "42P17": "A policy reads the table that it guards. Read it in a function instead."
    case "21000":
      """
      A policy, a trigger or a setting of the server does not take the statement: a subquery finds several \
      rows, or an update has no condition.
      """
    case "22P02": "A column that the library sets has another type than uuid."
    case "23502":
      """
      A column has no value, and the kind does not list it. Give it a default, or list it in the \
      configuration.
      """
    case "23503", "23505", "23P01":
      "A constraint refuses what the library sets, such as the user or the organisation."
    case "42P10": "The table has no primary key or unique constraint on \"id\" alone."
    case "3F000", "PGRST106": "The API does not expose the schema."
    case "unusable_row":
      """
      Rows cannot be used. org_id and id must be UUIDs; role, status and name texts; updated_at must \
      have a time zone (timestamptz). Without a column: a row is too large, nested too deep, or has a \
      number beyond 64 bits.
      """
    case "loop":
      "The server sends the same page again, or none where it counts rows, as if it ignored filters or order."
    case Problem.silence:
      """
      A request waits, and nothing asks for it. Call holdfast_next in a loop, on a thread or when \
      holdfast_wake_fd is readable, or use the HTTP driver.
      """
    case "too_many_rows": "The user has more memberships than the library keeps."
    default: "The server refuses the request for its schema or configuration; see its log."
    }
  }

  private static func text(_ cause: SignInCause) -> StaticCString {
    switch cause {
    case .wrongAPIKey: "The gateway refuses backend.api_key. Set the project's present key."
    case .wrongURL: "The server has no such path. Set backend.url to the project's URL."
    case .projectPaused: "The project is paused. Start it in Supabase's dashboard."
    case .refused: "Nothing listens at backend.url. Check host and port."
    case .dns: "The host of backend.url has no address. Check its name."
    case .tls: "The connection is not secure. Check https, port and certificate."
    case .timeout: "No answer comes from backend.url. Check it."
    case .tokenTooLong:
      """
      A refresh brings a token of more than 16384 bytes, which is not taken. Put less into its claims, \
      for instance in app_metadata or a hook.
      """
    default:
      """
      The answer is not from Supabase: a captive portal, a proxy, or another server at backend.url.
      """
    }
  }
}

/// The requests that the server refuses for its schema, until the same request is answered. Each purpose
/// and kind has its own: a missing table says nothing about another one.
final class Problems {
  /// What a request asks for.
  final class Subject {
    let what: StaticCString
    let purpose: Purpose
    let kind: String?
    let table: String?
    let function: String?
    /// A read-back is another request than the upload that it follows.
    let isReadBack: Bool
    /// What the rows of a list say; an answer to the request ends it only with the list.
    let isOfList: Bool

    init(
      _ what: StaticCString, _ purpose: Purpose, kind: String? = nil, table: String? = nil,
      function: String? = nil, isReadBack: Bool = false, isOfList: Bool = false
    ) {
      self.what = what
      self.purpose = purpose
      self.kind = kind
      self.table = table
      self.function = function
      self.isReadBack = isReadBack
      self.isOfList = isOfList
    }

    func isSame(as other: Subject) -> Bool {
      purpose == other.purpose && kind == other.kind && isReadBack == other.isReadBack
        && isOfList == other.isOfList
    }
  }

  /// A configuration may have many kinds.
  private static var most: Int { 64 }

  /// So many requests in a row without an answer are reported as a problem.
  private static var silencesOfProblem: Int { 2 }

  private let core: Core
  private var all: [Problem] = []
  /// Why no answer comes from the service; one for all requests, which have one key and one address.
  private var connection: Problem?
  private var silences = 0
  /// The last request that was made before the last of them.
  private var lastSentBySilence: Int64 = 0

  init(_ core: Core) { self.core = core }

  /// The session ended: another user may be allowed more.
  func forgetAll() {
    all = []
    connection = nil
  }

  /// Why no answer comes from the service, if an answer proves it.
  var obstacle: MessageCode? { connection?.cause?.messageCode }

  func concern(_ purpose: Purpose) -> Bool { all.contains { $0.subject.purpose == purpose } }

  /// Whether there is a problem with uploads of the kind.
  func concern(kind: String) -> Bool {
    all.contains { $0.subject.kind == kind && $0.subject.purpose == .upload }
  }

  var json: JSON {
    let list = JSON.array(all.map { $0.json })
    if let connection { list.append(connection.json) }
    return list
  }

  /// Note what the response says about the schema, and whether it comes from the service. `lastSent`
  /// is the last request so far.
  func note(
    _ request: InFlightRequest, _ response: HTTPResponse, lastSent: Int64, _ now: Instant
  ) {
    noteConnection(request, response, lastSent, now)
    // Of an upload, the policy says what is refused.
    if case .upload = request.content { return }
    guard let subject = subject(of: request.content, request.purpose) else { return }
    let outcome = RestClassification.rest(response.facts)
    guard let error = request.refusal(outcome, response), let code = error.code else {
      if outcome.isOfWorkingSchema { end(subject) }
      return
    }
    let problem = Problem(subject, code, now)
    problem.table = ServerError.table(code, error.message) ?? subject.table
    problem.column = error.column
    set(problem)
  }

  /// The server refuses uploads of the kind, and blames no item; nil: it takes them.
  func noteUpload(of batch: UploadBatch, _ refusal: ParkReason?, _ now: Instant) {
    guard let subject = subject(of: .upload(batch), .upload) else { return }
    guard let refusal else { return end(subject) }
    guard let code = refusal.sqlstate else { return }
    let problem = Problem(subject, code, now)
    problem.table = ServerError.table(code, refusal.message) ?? subject.table
    problem.column = refusal.field
    set(problem)
  }

  /// Note what the list of memberships says.
  func noteMemberships(_ read: MembershipRead, _ now: Instant) {
    let subject = Subject(
      "memberships", .membershipCheck, table: core.configuration.backend.membershipsTable,
      isOfList: true)
    guard let problem = read.problem else { return end(subject) }
    set(subject, problem, read.fault, now)
  }

  /// Note what a pull says that has ended.
  func notePull(_ pull: RowPull, _ problem: ListProblem?, _ now: Instant) {
    let subject = Problems.subject(pull, isOfList: true)
    if let problem = problem ?? pull.fault.map({ _ in .unusableRow }) {
      set(subject, problem, pull.fault, now)
    } else {
      // A pull of changes does not meet the row again that could not be used.
      let loop = ListProblem.loop.rawValue
      all.removeAll { $0.subject.isSame(as: subject) && (pull.hasReadAll || $0.code == loop) }
    }
  }

  private func set(
    _ subject: Subject, _ found: ListProblem, _ fault: RowFault?, _ now: Instant
  ) {
    let problem = Problem(subject, found.rawValue, now)
    if found == .unusableRow { problem.column = fault?.column }
    set(problem)
  }

  private func end(_ subject: Subject) { all.removeAll { $0.subject.isSame(as: subject) } }

  private func set(_ problem: Problem) {
    if let index = all.firstIndex(where: { $0.subject.isSame(as: problem.subject) }) {
      if all[index].isSame(as: problem) { return }
      all[index] = problem
      log(problem)
    } else {
      add(problem)
    }
  }

  private func add(_ problem: Problem) {
    guard all.count < Problems.most else { return }
    all.append(problem)
    log(problem)
  }

  private func log(_ problem: Problem) {
    let purpose = problem.subject.purpose.rawValue
    let host = problem.cause == nil ? "" : ", host " + core.configuration.backend.host
    Log.line(.warning, "problem: \(purpose), \(problem.code)\(host). \(problem.describe())")
  }

  /// A refresh brought a token that is too long to be used.
  func noteLongToken(_ now: Instant) {
    if !hasLongToken { add(Problems.obstacle(.tokenTooLong, .refresh, now)) }
  }

  private static func obstacle(
    _ cause: SignInCause, _ purpose: Purpose, _ now: Instant
  ) -> Problem {
    let problem = Problem(Subject("backend", purpose), cause.rawValue, now)
    problem.cause = cause
    return problem
  }

  private var hasLongToken: Bool { all.contains { $0.cause == .tokenTooLong } }

  /// A refresh succeeded, with an access token of this lifetime.
  func note(lifetimeS: Int64, _ now: Instant) {
    all.removeAll { $0.cause == .tokenTooLong }
    let known = all.firstIndex { $0.code == Problem.lifetime }
    guard RefreshPolicy.isTooShort(lifetimeMS: lifetimeS * 1000) else {
      if let known { all.remove(at: known) }
      return
    }
    if let known {
      all[known].lifetimeS = lifetimeS
      return
    }
    let problem = Problem(Subject("backend", .refresh), Problem.lifetime, now)
    problem.lifetimeS = lifetimeS
    add(problem)
  }

  /// A request waits, and nothing has asked for a while.
  func noteSilence(_ purpose: Purpose, _ now: Instant) {
    guard !all.contains(where: { $0.code == Problem.silence }) else { return }
    add(Problem(Subject("host", purpose), Problem.silence, now))
  }

  /// Something asks again.
  func endSilence() { all.removeAll { $0.code == Problem.silence } }

  /// What the server refused of this kind was the fault of an item.
  func end(kind: String) {
    all.removeAll {
      $0.subject.kind == kind && $0.subject.purpose == .upload && !$0.subject.isReadBack
    }
  }

  private static func subject(_ pull: RowPull, isOfList: Bool = false) -> Subject {
    let source = pull.source
    return Subject(
      source.kind == nil ? "contacts" : "own", .pull, kind: source.kind?.name, table: source.table,
      isOfList: isOfList)
  }

  private func noteConnection(
    _ request: InFlightRequest, _ response: HTTPResponse, _ lastSent: Int64, _ now: Instant
  ) {
    if response.isOwn(request.purpose) {
      connection = nil
      silences = 0
      return
    }
    if response.status != 0 { silences = 0 }
    guard let cause = request.obstacle(response) else { return }
    if cause.isSilence { noteSilence(request, lastSent) }
    if let known = connection?.cause, known == cause || cause.isSilence && !known.isSilence {
      return
    }
    if cause.isSilence, silences < Problems.silencesOfProblem { return }
    let problem = Problems.obstacle(cause, request.purpose, now)
    connection = problem
    log(problem)
  }

  /// Requests that were under way together fail together: that is one silence.
  private func noteSilence(_ request: InFlightRequest, _ lastSent: Int64) {
    guard silences == 0 || request.id > lastSentBySilence else { return }
    silences += 1
    lastSentBySilence = lastSent
  }

  /// nil: the request does not depend on the configured names.
  private func subject(
    of content: InFlightRequest.Content, _ purpose: Purpose
  ) -> Subject? {
    let backend = core.configuration.backend
    switch content {
    case .membershipCheck: return Subject("memberships", purpose, table: backend.membershipsTable)
    case .rows(let pull): return Problems.subject(pull)
    case .live: return Subject("contacts", purpose, table: backend.contactsTable)
    case .summary: return Subject("summary", purpose, function: backend.summaryFunction)
    case .upload(let batch):
      let kind = batch.kind
      return kind.upload == .rpc
        ? Subject("queue", purpose, kind: kind.name, function: kind.function)
        : Subject("queue", purpose, kind: kind.name, table: kind.table)
    case .readBack(let batch):
      return Subject(
        "queue", purpose, kind: batch.kind.name, table: batch.kind.table, isReadBack: true)
    case .refresh, .validate, .signIn, .revoke: return nil
    }
  }
}

extension RestOutcome {
  /// The server did what it was asked.
  fileprivate var isOfWorkingSchema: Bool { self == .answered || self == .endOfData }
}

extension InFlightRequest {
  /// Why this is no answer of the service; nil when it may be one, or tells nothing.
  fileprivate func obstacle(_ response: HTTPResponse) -> SignInCause? {
    switch content {
    // A sign-in tells its cause itself, and a revocation may concern another session.
    case .signIn, .revoke: return nil
    default: break
    }
    // A request that ran out without a word of the host's tells nothing.
    if response.status == 0 { return response.error == nil ? nil : response.silence }
    // Only with these fields it is the auth service's.
    let isSuccess = (200..<300).contains(response.status)
    if isSuccess, purpose.isAuth { return .notSupabase }
    let cause = AuthClassification.obstacle(response.facts)
    // A firewall may refuse an item for what is in it. The question that follows tells.
    if case .upload = content, cause != .projectPaused { return nil }
    return cause
  }

  /// The error by which the response refuses the request for the schema, and not for the rows or the user.
  fileprivate func refusal(_ outcome: RestOutcome, _ response: HTTPResponse) -> ServerError? {
    switch outcome {
    case .schemaNotReady, .serverBug, .denied: break
    default: return nil
    }
    // The user may not read every column; the next read-back asks for the ids alone.
    if case .readBack(let batch) = content, batch.request == .rows { return nil }
    return ServerError.read(response.body)
  }
}
