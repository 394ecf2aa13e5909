/// The library's version. The Makefile reads it from here; the Python package repeats it.
public enum Version {
  public static var text: StaticString { "0.2.0" }
}
