import TestSupport
import Testing

@testable import Policy

@Suite struct BannersTests {
  private func data(
    _ asOf: Int64?, now: Int64 = 1_000_000_000, online: Bool = true, failing: Bool = false
  ) -> [Banner] {
    Banners(asOfMS: asOf, nowMS: now, online: online, failing: failing).banners
  }

  @Test("OFF-3: data and the network")
  func ofData() {
    let fresh: Int64 = 999_999_000
    expect(data(fresh), equals: [])
    expect(data(fresh, online: false), equals: [.offline])
    expect(data(fresh, failing: true), equals: [.staleData])
    expect(data(fresh, online: false, failing: true), equals: [.offline], "nobody could have asked")
    expect(data(nil), equals: [.nothingCachedYet])
    expect(data(nil, online: false, failing: true), equals: [.offline, .nothingCachedYet])
    let partial = Banners(asOfMS: nil, nowMS: 1, online: true, failing: false, hasSome: true)
    expect(partial.banners, equals: [.partlyCached], "a first pull that is under way")
    let old = 1_000_000_000 - Banners.oldMS - 1
    expect(data(old), equals: [.staleData])
    expect(data(old, online: false), equals: [.offline, .staleData])
    expect(data(old + 1), equals: [])
    expect(
      data(1_000_000_000 + 3_600_001, online: false), equals: [.offline, .staleData],
      "another clock")
  }

  @Test("OFF-6, OFF-8: network-only columns, and items that are not sent")
  func ofContent() {
    var notices = Banners(asOfMS: 1, nowMS: 2, online: false, failing: false)
    notices.needsNetwork = true
    notices.isUnsent = true
    expect(notices.banners, equals: [.offline, .encryptedRequiresConnectivity, .queuedNotSent])
    notices.isOffline = false
    expect(notices.banners, equals: [.queuedNotSent], "online, the fields can be fetched")
  }

  @Test("A decision's banners follow its flags")
  func ofDecision() {
    expect(Banners(decision: Decision(.home)).banners, equals: [])
    expect(
      Banners(decision: Decision(.home, stale: true, offline: true)).banners,
      equals: [.offline, .staleData])
  }

  @Test("Only banners about misleading data warn; banners about data tell its age")
  func tones() {
    expect(Banner.allCases.filter { $0.tone == .warning }, equals: [.erasureOwed, .staleData])
    expect(Banner.allCases.filter { $0.tellsAge }, equals: [.offline, .staleData])
  }
}
