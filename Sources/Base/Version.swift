/// The library's version, the only place where it is written.
public enum Version {
  public static var text: StaticString { "0.1.0" }
}
