import Base
import Supabase

/// Checks the payload of an item against its kind, the session and what JSON numbers can hold exactly.
enum PayloadReader {
  /// The payload without the columns that the session sets. `accepted` is the payload that an edit
  /// replaces: it may keep columns that the kind does not list any more.
  static func read(
    _ fields: Fields, _ kind: QueueKind, accepted: JSON? = nil, id: UUID, org: UUID?, user: UUID
  ) throws(Failure) -> JSON {
    let payload = try fields.required("payload")
    guard payload.kind == .object else {
      throw Failure(.queueInvalidPayload, "an object is expected", field: "/payload")
    }
    let result = [:] as JSON
    for (name, value) in payload.members {
      var field: String { "/payload/" + JSONPointer.escape(name) }
      let fixed: UUID? =
        name == "id" ? id : name == "org_id" ? org : name == "user_id" ? user : nil
      if let fixed {
        guard value.uuid == fixed else {
          throw Failure(
            .queueInvalidPayload, "the session sets this; another value is refused", field: field)
        }
        continue
      }
      guard kind.columns.contains(name) || accepted?[member: name] != nil else {
        let near = Suggestion.nearest(to: name, among: kind.columns)
        throw Failure(
          .queueUnknownColumn,
          near.map { "no such column; did you mean \"\($0)\"?" } ?? "no such column",
          field: field)
      }
      try checkNumbers(value) { field }
      result.set(member: name, value)
    }
    return result
  }

  private static func checkNumbers(_ value: JSON, _ field: () -> String) throws(Failure) {
    if let number = value.int, !Fields.safe.contains(number) {
      throw Failure(.queueInvalidPayload, "an integer beyond 2^53 is not exact", field: field())
    }
    for (index, element) in value.elements.enumerated() {
      try checkNumbers(element) { "\(field())/\(index)" }
    }
    for (key, element) in value.members {
      try checkNumbers(element) { field() + "/" + JSONPointer.escape(key) }
    }
  }
}
