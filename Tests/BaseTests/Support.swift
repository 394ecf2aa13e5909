import Testing

@testable import Base

/// Parses a text, by default as a request of the host.
func parse(_ text: String, _ dialect: JSON.Dialect = .strict) throws(Failure) -> JSON {
  try parse(Array(text.utf8), dialect)
}

func parse(_ bytes: [UInt8], _ dialect: JSON.Dialect = .strict) throws(Failure) -> JSON {
  var result = Result<JSON, Failure>.failure(.defect("not read"))
  bytes.withUnsafeBytes { bytes in
    do throws(Failure) { result = .success(try JSON.parse(bytes, dialect)) } catch {
      result = .failure(error)
    }
  }
  return try result.get()
}

/// The failure of `body`, or nil when it succeeds.
func failure<Value>(_ body: () throws(Failure) -> Value) -> Failure? {
  do throws(Failure) {
    _ = try body()
    return nil
  } catch {
    return error
  }
}

/// Code and field of the failure of a text, as "code field".
func refusal(_ text: String) -> String? {
  failure { () throws(Failure) in try parse(text) }.map { "\($0.code.rawValue) \($0.field ?? "-")" }
}
