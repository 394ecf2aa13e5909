// Not Foundation, whose functions on strings would be visible in every test then.
#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

private let isFull = getenv("HOLDFAST_SIZE").map { String(cString: $0) == "full" } ?? false

/// How many random cases a test takes: `full` with HOLDFAST_SIZE=full (`make test-all`), else `reduced`.
public func sized<Value>(_ reduced: Value, full: Value) -> Value { isFull ? full : reduced }
