import Base
import Supabase
import TestSupport
import Testing

@testable import Engine

/// What becomes of an item that its user corrects, as a function of the item and the row that the server has.
@Suite struct CorrectionTests {
  /// A kind whose stored rows have `n`, `note` and `fixed`, which is not changed.
  private static func kind(
    _ members: String = #","change":{"columns":["n","note"]},"delete":"deleted_at""#
  ) throws -> QueueKind {
    let fields = try Fields(
      try json(
        #"{"backend":{"url":"https://x.supabase.co","api_key":"k","queue":{"a":{"table":"t","#
          + #""columns":["user_id","n","note","fixed"],"own":{}\#(members)}}}}"#),
      known: ["backend"])
    return try #require(try Backend.read(in: fields).kind("a"))
  }

  private static func own(_ members: String? = nil) throws -> OwnRows {
    try #require(try members.map { try kind($0) }?.own ?? kind().own)
  }

  /// An item that waits to be inserted.
  private func insert(_ payload: String, sent: String? = nil) throws -> QueueItem {
    let item = QueueItem(
      id: id(1), kind: "a", org: nil, payload: try json(payload), dependsOn: [], occurredAtMS: nil)
    item.sent = try sent.map { try json($0) }
    return item
  }

  /// A change of the columns in `payload` of a row that its user saw as `row`; nil: a deletion.
  private func correction(
    _ payload: String?, of row: String, version: String? = "v1", sent: String? = nil
  ) throws -> QueueItem {
    let item = try insert(payload ?? "{}", sent: sent)
    item.stored = StoredBase(row: try json(row), version: version, isDeleted: payload == nil)
    return item
  }

  // MARK: What was sent

  @Test func everyValueThatWasSentIsKnownOnce() throws {
    let item = try insert(#"{"n":1,"fixed":"f"}"#)
    item.noteSent(try Self.kind())
    // An insert that leaves a column out has the default of the table, which is mostly null.
    try expect(item.sent, equals: json(#"{"n":[1],"fixed":["f"],"note":[null]}"#))
    item.payload = try json(#"{"n":2,"note":"x"}"#)
    item.noteSent(try Self.kind())
    item.noteSent(try Self.kind())
    try expect(item.sent, equals: json(#"{"n":[1,2],"fixed":["f"],"note":[null,"x"]}"#))
  }

  @Test func aChangeSendsOnlyItsColumns() throws {
    let item = try correction(#"{"n":2}"#, of: #"{"n":1,"note":"x"}"#)
    item.noteSent(try Self.kind())
    try expect(item.sent, equals: json(#"{"n":[2]}"#))
  }

  /// An item that is only asked about is in no request: a value that equals it is another one's.
  @Test(arguments: ["cancelled", "a change without a version"])
  func whatIsOnlyAskedAboutWasNotSent(_ what: String) throws {
    let item =
      what == "cancelled"
      ? try insert(#"{"n":2}"#, sent: #"{"n":[1]}"#)
      : try correction(#"{"n":2}"#, of: #"{"n":1}"#, version: nil, sent: #"{"n":[1]}"#)
    item.isCancelled = what == "cancelled"
    item.noteSent(try Self.kind())
    try expect(item.sent, equals: json(#"{"n":[1]}"#))
  }

  // MARK: Changing

  /// The row, the change that waits, what was sent of it, the edit; the change then, nil: nothing is left to do.
  @Test(
    arguments: [
      (#"{"n":1,"note":"x"}"#, "{}", nil, #"{"n":2}"#, #"{"n":2}"#),
      (#"{"n":1,"note":"x"}"#, "{}", nil, #"{"n":2,"note":"x"}"#, #"{"n":2}"#),
      (#"{"n":1,"note":"x"}"#, #"{"n":2}"#, nil, #"{"note":"y"}"#, #"{"n":2,"note":"y"}"#),
      (#"{"n":1,"note":"x"}"#, #"{"n":2}"#, nil, #"{"n":3}"#, #"{"n":3}"#),
      // The user takes the edit back.
      (#"{"n":1,"note":"x"}"#, #"{"n":2}"#, nil, #"{"n":1}"#, nil),
      (#"{"n":1,"note":"x"}"#, #"{"n":2,"note":"y"}"#, nil, #"{"n":1}"#, #"{"note":"y"}"#),
      // The server may get the other value yet.
      (#"{"n":1,"note":"x"}"#, #"{"n":2}"#, #"{"n":[2]}"#, #"{"n":1}"#, #"{"n":1}"#),
      // The same value in another form is no change.
      (
        #"{"n":12.5,"note":"2026-01-01T09:00:00+00:00"}"#, "{}", nil,
        #"{"n":12.50,"note":"2026-01-01T10:00:00+01:00"}"#, nil
      ),
      // Another text is one.
      (#"{"n":1,"note":"kari"}"#, "{}", nil, #"{"note":"Kari"}"#, #"{"note":"Kari"}"#),
      // A column that is not known is changed.
      (#"{"n":1}"#, "{}", nil, #"{"note":null}"#, #"{"note":null}"#),
    ] as [(String, String, String?, String, String?)])
  func aChangeHasTheColumnsThatDifferFromTheRowAsItsUserSawIt(
    _ row: String, _ waiting: String, _ sent: String?, _ edit: String, _ expected: String?
  ) throws {
    let item = try correction(waiting, of: row, sent: sent)
    let hasWork = item.change(try json(edit))
    expect(hasWork, equals: expected != nil)
    try expect(item.payload, equals: json(expected ?? "{}"))
    try expect(item.stored?.row, equals: json(row))
    expect(item.stored?.version, equals: "v1")
  }

  @Test func anotherChangeHasAnotherID() throws {
    let item = try correction(#"{"n":2}"#, of: #"{"n":1}"#)
    let first = item.stored?.changeID
    _ = item.change(["n": 3])
    expect(item.stored?.changeID != first)
    // The same change on another base keeps it.
    let second = try #require(item.stored)
    expect(second.moved(to: [:], version: "v2").changeID, equals: second.changeID)
  }

  /// The deletion may be done already, so a row that is to stay is sent as it is.
  @Test(arguments: [(nil, false), (#"{"deleted_at":[]}"#, true)] as [(String?, Bool)])
  func aDeletionThatWasSentIsTakenBackByAChange(_ sent: String?, _ hasWork: Bool) throws {
    let item = try correction(nil, of: #"{"n":1,"note":"x"}"#, sent: sent)
    expect(item.change(["n": 1]), equals: hasWork)
    expect(item.operation == .change)
    try expect(item.payload, equals: json(hasWork ? #"{"n":1}"# : "{}"))
  }

  // MARK: Going on

  /// What was sent of an insert, what its user wants meanwhile, and the change that is left; nil: none.
  @Test(
    arguments: [
      (#"{"n":1,"note":"x"}"#, #"{"n":1,"note":"x"}"#, nil),
      (#"{"n":1,"note":"x"}"#, #"{"n":2,"note":"x"}"#, #"{"n":2}"#),
      // An edit of an insert replaces the whole payload.
      (#"{"n":1,"note":"x"}"#, #"{"n":1}"#, #"{"note":null}"#),
      (#"{"n":1}"#, #"{"n":1,"note":"x"}"#, #"{"note":"x"}"#),
      // A column that could be changed when the edit was made.
      (#"{"n":1,"fixed":"a"}"#, #"{"n":1,"fixed":"b"}"#, #"{"fixed":"b"}"#),
    ] as [(String, String, String?)])
  func anInsertThatIsProvedGoesOnAsAChange(
    _ sent: String, _ wanted: String, _ expected: String?
  ) throws {
    let item = try insert(wanted, sent: #"{"n":[0]}"#)
    item.isRevised = true
    item.mayBeCounted = true
    let hasWork = item.follow(try json(sent), version: "v1", try Self.kind())
    expect(hasWork, equals: expected != nil)
    expect(item.operation == .change)
    try expect(item.payload, equals: json(expected ?? "{}"))
    try expect(item.stored?.row, equals: json(sent))
    expect(item.stored?.version, equals: "v1")
    expect(item.sent == nil && !item.isRevised && !item.mayBeCounted)
  }

  @Test func aChangeThatIsProvedGoesOnFromWhatItHasMade() throws {
    // The row had n 1; the user set 2, which was sent, and wants 1 again and another note.
    let item = try correction(
      #"{"n":1,"note":"y"}"#, of: #"{"n":1,"note":"x"}"#, sent: #"{"n":[2]}"#)
    expect(item.follow(["n": 2], version: "v2", try Self.kind()))
    try expect(item.payload, equals: json(#"{"n":1,"note":"y"}"#))
    try expect(item.stored?.row, equals: json(#"{"n":2,"note":"x"}"#))
    // A column that the user leaves alone is no part of it.
    let other = try correction(#"{"n":2}"#, of: #"{"n":1,"note":"x"}"#)
    expect(!other.follow(["n": 2], version: "v2", try Self.kind()))
  }

  @Test func anItemThatWasCancelledGoesOnAsADeletion() throws {
    for what in ["insert", "change"] {
      let item = try what == "insert" ? insert(#"{"n":1}"#) : correction(nil, of: #"{"n":0}"#)
      item.isCancelled = what == "insert"
      expect(item.follow(["n": 1], version: "v1", try Self.kind()))
      expect(item.operation == .delete)
      expect(item.payload.count, equals: 0)
      expect(!item.isCancelled)
      expect(item.stored?.row.int("n"), equals: 1)
    }
  }

  /// What was sent of an insert, its payload, and the change that is left; nil: none.
  @Test(
    arguments: [
      (#"{"n":[1],"note":["x"]}"#, #"{"n":1,"note":"x"}"#, nil, #"{"n":1,"note":"x"}"#),
      (#"{"n":[1],"note":["x"]}"#, #"{"n":2,"note":"x"}"#, #"{"n":2}"#, #"{"n":1,"note":"x"}"#),
      // Nobody knows which of the values the server has: also the last one is sent.
      (#"{"n":[1,2],"note":["x"]}"#, #"{"n":2,"note":"x"}"#, #"{"n":2}"#, #"{"note":"x"}"#),
      (
        #"{"n":[1],"note":[null]}"#, #"{"n":1,"note":"x"}"#, #"{"note":"x"}"#,
        #"{"n":1,"note":null}"#
      ),
      (#"{"n":[1],"note":["x"]}"#, #"{"n":1}"#, #"{"note":null}"#, #"{"n":1,"note":"x"}"#),
    ] as [(String, String, String?, String)])
  func anInsertOfWhichAnyFormMayBeStoredIsReadFirst(
    _ sent: String, _ payload: String, _ expected: String?, _ row: String
  ) throws {
    let item = try insert(payload, sent: sent)
    expect(item.followUnread(try Self.kind()), equals: expected != nil)
    try expect(item.payload, equals: json(expected ?? "{}"))
    expect(item.stored?.version, equals: nil)
    try expect(item.stored?.row, equals: json(row))
    expect(item.correction == nil)
    try expect(item.sent, equals: json(sent))
  }

  // MARK: Comparing

  struct Case: CustomTestStringConvertible {
    let name: String
    /// nil: a deletion.
    let change: String?
    let base: String
    var sent: String?
    /// The row as the server has it, with its version.
    let row: String
    /// The version of the request; nil: the row was only read.
    var named: String? = "v1"
    /// The request had this payload.
    var isSent = true
    let expected: Comparison?

    var testDescription: String { name }
  }

  private static let cases: [Case] = [
    Case(
      name: "a lost answer", change: #"{"n":2}"#, base: #"{"n":1,"note":"x"}"#,
      row: #"{"n":2,"note":"x","updated_at":"v2"}"#, expected: .same),
    Case(
      name: "mine in another form", change: #"{"n":2,"note":"2026-01-01T10:00:00+01:00"}"#,
      base: #"{"n":1}"#, row: #"{"n":2.0,"note":"2026-01-01T09:00:00+00:00","updated_at":"v2"}"#,
      expected: .same),
    Case(
      name: "mine as the server trims it", change: #"{"note":" Kari "}"#, base: #"{"note":"Ola"}"#,
      row: #"{"note":"Kari","updated_at":"v2"}"#, expected: .same),
    Case(
      name: "mine in another case", change: #"{"note":"Kari"}"#, base: #"{"note":"Ola"}"#,
      row: #"{"note":"kari","updated_at":"v2"}"#, expected: .changed(["note"])),
    Case(
      name: "mine as another type, and another value", change: #"{"n":"2"}"#, base: #"{"n":1}"#,
      row: #"{"n":3,"updated_at":"v2"}"#, expected: .changed(["n"])),
    Case(
      name: "cleared by others, and one of two values was sent", change: #"{"note":"c"}"#,
      base: "{}", sent: #"{"note":["a","b"]}"#, row: #"{"note":null,"updated_at":"v1"}"#,
      named: nil, isSent: false, expected: .changed(["note"])),
    Case(
      name: "not changeable", change: #"{"n":2}"#, base: #"{"n":1,"note":"x"}"#,
      row: #"{"n":1,"note":"x","updated_at":"v1"}"#, expected: .unchanged),
    Case(
      name: "others changed another column", change: #"{"n":2}"#, base: #"{"n":1,"note":"x"}"#,
      row: #"{"n":1,"note":"theirs","updated_at":"v2"}"#, expected: .free),
    Case(
      name: "others changed the same column", change: #"{"n":2}"#, base: #"{"n":1,"note":"x"}"#,
      row: #"{"n":3,"note":"x","updated_at":"v2"}"#, expected: .changed(["n"])),
    Case(
      name: "others changed one of two", change: #"{"n":2,"note":"y"}"#,
      base: #"{"n":1,"note":"x"}"#,
      row: #"{"n":3,"note":"x","updated_at":"v2"}"#, expected: .changed(["n"])),
    Case(
      name: "one column has mine, the other one's base", change: #"{"n":2,"note":"y"}"#,
      base: #"{"n":1,"note":"x"}"#, row: #"{"n":2,"note":"x","updated_at":"v2"}"#, expected: .free),
    Case(
      name: "an earlier value of mine", change: #"{"n":3}"#, base: #"{"n":1}"#, sent: #"{"n":[2]}"#,
      row: #"{"n":2,"updated_at":"v2"}"#, isSent: false, expected: .free),
    Case(
      name: "an earlier value of mine as the server trims it", change: #"{"note":"c"}"#,
      base: #"{"note":"a"}"#, sent: #"{"note":[" b "]}"#, row: #"{"note":"b","updated_at":"v2"}"#,
      isSent: false, expected: .free),
    Case(
      name: "only read, and the base", change: #"{"n":2}"#, base: #"{"n":1}"#,
      row: #"{"n":1,"updated_at":"v1"}"#, named: nil, isSent: false, expected: .free),
    Case(
      name: "only read, and mine", change: #"{"n":2}"#, base: "{}", sent: #"{"n":[1,2]}"#,
      row: #"{"n":2,"updated_at":"v1"}"#, named: nil, isSent: false, expected: .same),
    Case(
      name: "only read, and an earlier one", change: #"{"n":2}"#, base: "{}", sent: #"{"n":[1,2]}"#,
      row: #"{"n":1,"updated_at":"v1"}"#, named: nil, isSent: false, expected: .free),
    Case(
      name: "only read, and another's", change: #"{"n":2}"#, base: "{}", sent: #"{"n":[1,2]}"#,
      row: #"{"n":3,"updated_at":"v1"}"#, named: nil, isSent: false, expected: .changed(["n"])),
    Case(
      name: "null is a value", change: #"{"note":"y"}"#, base: #"{"note":null}"#,
      row: #"{"note":"theirs","updated_at":"v2"}"#, expected: .changed(["note"])),
    Case(
      name: "null of others", change: #"{"note":"y"}"#, base: #"{"note":"x"}"#,
      row: #"{"note":null,"updated_at":"v2"}"#, expected: .changed(["note"])),
    Case(
      name: "mine is null", change: #"{"note":null}"#, base: #"{"note":"x"}"#,
      row: #"{"note":null,"updated_at":"v2"}"#, expected: .same),
    Case(
      name: "mine is null, theirs is not", change: #"{"note":null}"#, base: #"{"note":"x"}"#,
      row: #"{"note":"theirs","updated_at":"v2"}"#, expected: .changed(["note"])),
    Case(
      name: "deleted by others", change: #"{"n":2}"#, base: #"{"n":1}"#,
      row: #"{"n":2,"updated_at":"v2","deleted_at":"now"}"#, expected: .deleted),
    Case(
      name: "not deleted", change: #"{"n":2}"#, base: #"{"n":1}"#,
      row: #"{"n":2,"updated_at":"v2","deleted_at":null}"#, expected: .same),
    // The base is better known than what a server may make of a text.
    Case(
      name: "a text in another case was not stored", change: #"{"note":"Kari"}"#,
      base: #"{"note":"kari"}"#,
      row: #"{"note":"kari","updated_at":"v2"}"#, expected: .free),
    Case(
      name: "a text in another case cannot be changed", change: #"{"note":"Kari"}"#,
      base: #"{"note":"kari"}"#,
      row: #"{"note":"kari","updated_at":"v1"}"#, expected: .unchanged),
    Case(
      name: "a number that lost its end was not stored", change: #"{"note":"12"}"#,
      base: #"{"note":"123"}"#,
      row: #"{"note":"123","updated_at":"v2"}"#, expected: .free),
    Case(
      name: "a list that lost a member was not stored", change: #"{"note":{"a":1}}"#,
      base: #"{"note":{"a":1,"b":2}}"#, row: #"{"note":{"a":1,"b":2},"updated_at":"v2"}"#,
      expected: .free),
    // A request with another value may be on its way: only another version makes it void.
    Case(
      name: "mine is the base, and another value was sent", change: #"{"n":1}"#, base: #"{"n":1}"#,
      sent: #"{"n":[2]}"#, row: #"{"n":1,"updated_at":"v1"}"#, isSent: false, expected: .free),
    Case(
      name: "mine is the base, and the other value is void", change: #"{"n":1}"#, base: #"{"n":1}"#,
      sent: #"{"n":[2]}"#, row: #"{"n":1,"updated_at":"v2"}"#, isSent: false, expected: .same),
    Case(
      name: "the row does not show the column", change: #"{"n":2}"#, base: #"{"n":1}"#,
      row: #"{"note":"x","updated_at":"v2"}"#, expected: nil),
    // Deletions.
    Case(
      name: "a deletion of a changed row", change: nil, base: #"{"n":1,"note":"x"}"#,
      row: #"{"n":1,"note":"theirs","updated_at":"v2"}"#, expected: .changed(["note"])),
    Case(
      name: "a deletion of a row with a value that its user never saw", change: nil,
      base: #"{"n":1}"#, row: #"{"n":1,"note":"theirs","updated_at":"v2"}"#,
      expected: .changed(["note"])),
    Case(
      name: "mine is the base, and a deletion was sent", change: #"{"n":1}"#, base: #"{"n":1}"#,
      sent: #"{"deleted_at":[]}"#, row: #"{"n":1,"updated_at":"v1"}"#, isSent: false,
      expected: .free),
    Case(
      name: "a deletion of a row that is as it was", change: nil, base: #"{"n":1,"note":"x"}"#,
      row: #"{"n":1,"note":"x","updated_at":"v2"}"#, expected: .free),
    Case(
      name: "a deletion that is not allowed", change: nil, base: #"{"n":1,"note":"x"}"#,
      row: #"{"n":1,"note":"x","updated_at":"v1"}"#, expected: .unchanged),
    Case(
      name: "a deletion that is done", change: nil, base: #"{"n":1}"#,
      row: #"{"n":1,"updated_at":"v2","deleted_at":"now"}"#, expected: .deleted),
    Case(
      name: "a deletion after a change of mine", change: nil, base: #"{"n":1}"#,
      sent: #"{"n":[2]}"#,
      row: #"{"n":2,"updated_at":"v2"}"#, expected: .free),
    Case(
      name: "a deletion of one of my forms", change: nil, base: "{}", sent: #"{"n":[1,2]}"#,
      row: #"{"n":2,"updated_at":"v2"}"#, named: nil, expected: .free),
    Case(
      name: "a deletion of none of my forms", change: nil, base: "{}", sent: #"{"n":[1,2]}"#,
      row: #"{"n":3,"updated_at":"v2"}"#, named: nil, expected: .changed(["n"])),
    Case(
      name: "a deletion of a row that is not shown whole", change: nil,
      base: #"{"n":1,"note":"x"}"#,
      row: #"{"n":1,"updated_at":"v2"}"#, expected: nil),
  ]

  @Test(arguments: cases)
  func theRowTellsWhatBecameOfACorrection(_ one: Case) throws {
    let item = try correction(one.change, of: one.base, version: one.named, sent: one.sent)
    var row = try json(one.row)
    // A deletion is compared with the whole row.
    if one.change == nil, one.expected != nil {
      row = try json(#"{"n":null,"note":null,"fixed":null}"#).laidOver(by: row)
    }
    let result = item.compare(row, try Self.own(), named: one.named, isSent: one.isSent)
    expect(result, equals: one.expected)
  }

  @Test(arguments: [
    (true, true, Comparison.same), (false, true, .changed(["n"])), (true, false, .changed(["n"])),
  ])
  func theIDOfTheChangeProvesItWhateverOthersHaveSetSince(
    _ isMine: Bool, _ isSent: Bool, _ expected: Comparison
  ) throws {
    let item = try correction(#"{"n":2}"#, of: #"{"n":1}"#)
    let row = try json(#"{"n":3,"updated_at":"v3"}"#)
    row.set("change_id", .uuid(isMine ? try #require(item.stored).changeID : id(7)))
    let own = try Self.own(#","change":{"columns":["n"],"id":"change_id"}"#)
    expect(item.compare(row, own, named: "v1", isSent: isSent), equals: expected)
    // Without a column for it, the values tell.
    try expect(item.compare(row, Self.own(), named: "v1", isSent: true), equals: .changed(["n"]))
  }

  @Test(arguments: [
    // The other change replaced the version that mine names, an older one, or one that came after it.
    (0, 0, Comparison.free), (-1, 0, .free), (1, 0, .free), (1, 1, .changed(["n"])),
  ])
  func theIDOfTheirChangeTellsWhetherMineCameBeforeIt(
    _ later: Int, _ attempts: Int, _ expected: Comparison
  ) throws {
    let version = "2026-11-20T10:00:00.000100+00:00"
    let item = try correction(#"{"n":2}"#, of: #"{"n":1}"#, version: version)
    let theirs = StoredBase(row: [:], version: nil)
    let row = try json(#"{"n":1,"updated_at":"2026-11-20T11:00:00+00:00"}"#)
    row.set("change_id", .uuid(theirs.sentID("2026-11-20T10:00:00.000\(100 + later)+00:00")))
    let own = try Self.own(#","change":{"columns":["n"],"id":"change_id"}"#)
    let result = item.compare(
      row, own, named: version, isSent: true, isRepeated: attempts > 0)
    expect(result, equals: expected)
  }

  @Test func aConflictShowsBaseTheirsAndMine() throws {
    let row = try json(#"{"n":3,"note":"x","fixed":"f","updated_at":"v2","other":1}"#)
    let item = try correction(#"{"n":2}"#, of: #"{"n":1,"note":"x"}"#)
    try expect(
      item.conflict(["n"], with: row, Self.own()),
      equals: json(
        #"{"columns":[{"name":"n","base":1,"theirs":3,"mine":2}],"#
          + #""row":{"n":3,"note":"x","fixed":"f"},"version":"v2"}"#))
    let deletion = try correction(nil, of: #"{"n":1,"note":"x"}"#)
    try expect(
      deletion.conflict(["n"], with: row, Self.own())["columns"],
      equals: json(#"[{"name":"n","base":1,"theirs":3,"mine":null}]"#))
  }

  // MARK: Storing

  @Test func aCorrectionIsStoredAsItIs() throws {
    let item = try correction(nil, of: #"{"n":1}"#, sent: #"{"n":[2]}"#)
    let copy = try #require(QueueItem(item.json))
    expect(copy.json, equals: item.json)
    expect(copy.operation == .delete)
    expect(copy.stored?.changeID, equals: item.stored?.changeID)
    expect(copy.correction?.version, equals: "v1")
    // JSON has a nil of its own.
    expect(copy.correction?.columns.map { _ in true } ?? false, equals: false)
    let unread = try #require(QueueItem(try correction(#"{"n":2}"#, of: "{}", version: nil).json))
    expect(unread.operation == .change)
    expect(unread.stored?.version, equals: nil)
  }
}
