import CJansson

/// The library's version. The Makefile reads both from here; the Python package repeats the text.
public enum Version {
  public static var text: StaticString { "0.2.0" }

  /// The number in the soname. Raise it when a function is removed or changes its meaning.
  public static var abi: Int32 { 1 }

  /// The version of the loaded jansson.
  public static var jansson: UnsafePointer<CChar>? { jansson_version_str() }
}
