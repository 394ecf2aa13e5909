import TestSupport
import Testing

@testable import Base

@Suite struct ASCIITests {
  @Test("Words are found anywhere in a text, without regard to case")
  func contains() {
    for text in ["jwt expired", "the JWT Expired.", "jwjwt expired"] {
      expect(ASCII.contains(text, "JWT expired"), "\(text)")
    }
    for text in ["", "jwt", "jwt  expired", "jwt expire", "wt expired"] {
      expect(!ASCII.contains(text, "JWT expired"), "\(text)")
    }
    expect(ASCII.contains("", "") && ASCII.contains("any", ""))
  }

  @Test("A prefix has regard to case")
  func starts() {
    expect(ASCII.starts("Bearer x", "Bearer ") && ASCII.starts("", ""))
    expect(!ASCII.starts("bearer x", "Bearer ") && !ASCII.starts("Bear", "Bearer "))
  }
}
