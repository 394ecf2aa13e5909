// Decides every situation of a session and of an upload once, compares the decisions with the oracles
// and with docs/decisions.md and docs/uploads.md, and checks the properties that all of them must have.
//
//   situations           exits with 1 if a check fails
//   situations --write   writes the pages first

import Foundation
import PolicyOracle

let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
  .deletingLastPathComponent().appending(path: "docs/decisions.md")

let examination = Examination()
let page = DecisionsDocument().markdown(examination.decisions)
let uploadsFile = file.deletingLastPathComponent().appending(path: "uploads.md")
let uploadsPage = UploadsDocument().markdown
if CommandLine.arguments.dropFirst().contains("--write") {
  try page.write(to: file, atomically: true, encoding: .utf8)
  try uploadsPage.write(to: uploadsFile, atomically: true, encoding: .utf8)
}

var results = examination.checks.map { (name: $0.name, failures: $0.failures) }
let all = examination.cells == Product.count
results.append(
  ("every situation is met", all ? [] : ["\(examination.cells) of \(Product.count)"]))
let stored = try String(contentsOf: file, encoding: .utf8)
results.append(("docs/decisions.md is current", stored == page ? [] : ["run make docs"]))
results.append(("uploads are judged as the oracle does", UploadProduct.failures()))
let storedUploads = try String(contentsOf: uploadsFile, encoding: .utf8)
results.append(
  ("docs/uploads.md is current", storedUploads == uploadsPage ? [] : ["run make docs"]))

for (name, failures) in results {
  print("\(failures.isEmpty ? "passed" : "FAILED"): \(name)")
  for failure in failures { print("  \(failure)") }
}
let failed = results.count { !$0.failures.isEmpty }
print("\(examination.cells) situations, \(examination.decisions.count) different decisions")
print("\(results.count - failed) passed, \(failed) failed")
exit(failed == 0 ? 0 : 1)
