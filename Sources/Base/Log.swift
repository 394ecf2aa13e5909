import CPlatform

/// Log lines for developers. They never hold tokens, names, ids of persons or payloads.
public enum Log {
  public enum Level: Int32, Sendable { case error = 0, warning, info, debug }

  public static func line(_ level: Level, _ text: @autoclosure () -> String) {
    guard platform_log_wants(level.rawValue) else { return }
    platform_log(level.rawValue, text())
  }

  /// Something failed, and the call goes on without it.
  public static func warning(_ what: StaticCString, _ failure: Failure) {
    line(.warning, "\(what.string): \(failure.code.rawValue)")
  }

  /// Write warnings to standard error, unless the host has said where its log goes.
  public static func toStandardError() { platform_log_to_stderr() }
}
