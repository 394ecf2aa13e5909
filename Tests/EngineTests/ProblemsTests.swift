import Base
import Policy
import Supabase
import TestSupport
import Testing

@testable import Engine

/// HST-4: what the server's schema refuses.
@Suite struct ProblemsTests {
  private func request(
    _ purpose: Purpose, _ content: InFlightRequest.Content
  ) -> InFlightRequest {
    InFlightRequest(id: 1, purpose: purpose, content: content, generation: 1, deadlineMS: 0)
  }

  private func refusal(_ code: String, _ message: String = "") throws -> HTTPResponse {
    try response(404, #"{"code":"\#(code)","message":"\#(message)"}"#)
  }

  /// (purpose, code, table, function) of each problem.
  private func listed(_ problems: Problems) -> [[String?]] {
    problems.json.elements.map {
      [$0.string("purpose"), $0.string("code"), $0.string("table"), $0.string("function")]
    }
  }

  @Test func aProblemKeepsItsTimeUntilAnotherTakesItsPlace() throws {
    let rig = try Rig.atHome()
    let problems = Problems(rig.core)
    let check = request(.membershipCheck, .membershipCheck(MembershipRead()))
    let begin = rig.now.wallMS
    problems.note(check, try refusal("PGRST205"), lastSent: 0, rig.now)
    rig.advance(1000)
    problems.note(check, try refusal("PGRST205"), lastSent: 0, rig.now)
    expect(problems.json.elements.map { $0.int("since_ms") }, equals: [begin])
    problems.note(
      check, try refusal("42501", "permission denied for table organizations"), lastSent: 0, rig.now
    )
    expect(problems.json.elements.map { $0.int("since_ms") }, equals: [begin + 1000])
    expect(listed(problems), equals: [["guard", "42501", "organizations", nil]])
    problems.forgetAll()
    expect(listed(problems).isEmpty)
  }

  @Test func anUploadAndItsReadBackAreDifferentRequests() throws {
    let rig = try Rig.atHome()
    let problems = Problems(rig.core)
    try rig.add(id(1))
    let batch = try rig.upload()
    problems.note(request(.upload, .readBack(batch)), try refusal("42P01"), lastSent: 0, rig.now)
    problems.noteUpload(of: batch, nil, rig.now)
    expect(listed(problems), equals: [["upload", "42P01", "activities", nil]])
    expect(problems.concern(kind: "activity") && !problems.concern(kind: "contact"))
    // A read-back that compares rows asks again with fewer columns
    problems.note(request(.upload, .readBack(batch)), try response(200, "[]"), lastSent: 0, rig.now)
    problems.note(
      request(.upload, .readBack(batch.asking(.rows))), try refusal("42703"), lastSent: 0, rig.now)
    expect(listed(problems).isEmpty)
    problems.noteUpload(of: batch, ParkReason(.rejected, sqlstate: "42501"), rig.now)
    expect(listed(problems), equals: [["upload", "42501", "activities", nil]])
    // The first refusal by a policy leads to the membership check
    let denied = UploadSituation(.denied)
    expect(!UploadPolicy.isOfKind(.wait(.organisation, charged: false), denied))
    expect(UploadPolicy.isOfKind(.wait(.kind, charged: true), denied))
  }
}
