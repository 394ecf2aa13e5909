public import Base
public import Testing

/// A condition that a test expects. A function and not the macro `#expect`, for which the compiler takes several times
/// as long: it expands each condition into closures that note its parts.
public func expect(
  _ condition: Bool, _ comment: @autoclosure () -> Comment? = nil,
  sourceLocation: SourceLocation = #_sourceLocation
) {
  if !condition { Issue.record(comment() ?? "is false", sourceLocation: sourceLocation) }
}

/// The same for a value, which the issue shows.
public func expect<Value: Equatable>(
  _ value: Value, equals expected: Value, _ comment: @autoclosure () -> Comment? = nil,
  sourceLocation: SourceLocation = #_sourceLocation
) {
  if value == expected { return }
  let note = comment().map { "; \($0)" } ?? ""
  Issue.record("\(value) instead of \(expected)\(note)", sourceLocation: sourceLocation)
}

/// A failure that a test does not expect is shown with its code and its message.
extension Failure: CustomStringConvertible {
  public var description: String { "\(code): \(message)" }
}
