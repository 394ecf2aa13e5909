import Policy
import PolicyOracle
import TestSupport
import Testing

/// `docs/decisions.md` can be read. That it agrees with the code, Tests/situations checks.
@Suite struct DecisionsDocumentTests {
  @Test("The document is short enough to read")
  func documentIsShort() {
    expect(DecisionsDocument().tables.reduce(0) { $0 + $1.rows.count } <= 150)
  }

  @Test("The diagram names only screens and messages that exist")
  func diagramIsTrue() {
    let known = Set(Screen.allCases.map(\.rawValue) + MessageCode.allCases.map(\.rawValue))
    let words = DecisionsDocument.diagram.split { !$0.isLetter && $0 != "_" }
    for word in words where word.contains("_") { expect(known.contains(String(word))) }
  }
}
