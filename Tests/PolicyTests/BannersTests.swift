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
    #expect(data(fresh) == [])
    #expect(data(fresh, online: false) == [.offline])
    #expect(data(fresh, failing: true) == [.staleData])
    #expect(data(fresh, online: false, failing: true) == [.offline], "nobody could have asked")
    #expect(data(nil) == [.nothingCachedYet])
    #expect(data(nil, online: false, failing: true) == [.offline, .nothingCachedYet])
    let partial = Banners(asOfMS: nil, nowMS: 1, online: true, failing: false, hasSome: true)
    #expect(partial.banners == [.partlyCached], "a first pull that is under way")
    let old = 1_000_000_000 - Banners.oldMS - 1
    #expect(data(old) == [.staleData])
    #expect(data(old, online: false) == [.offline, .staleData])
    #expect(data(old + 1) == [])
    #expect(
      data(1_000_000_000 + 3_600_001, online: false) == [.offline, .staleData], "another clock")
  }

  @Test("OFF-6, OFF-8: withheld columns, and items that are not sent")
  func ofContent() {
    var notices = Banners(asOfMS: 1, nowMS: 2, online: false, failing: false)
    notices.withholds = true
    notices.isUnsent = true
    #expect(notices.banners == [.offline, .encryptedRequiresConnectivity, .queuedNotSent])
    notices.isOffline = false
    #expect(notices.banners == [.queuedNotSent], "online, the fields can be fetched")
  }

  @Test("A decision's banners follow its flags")
  func ofDecision() {
    #expect(Banners(decision: Decision(.home, .active)).banners == [])
    #expect(
      Banners(decision: Decision(.home, .active, stale: true, offline: true)).banners
        == [.offline, .staleData])
  }

  @Test("Only banners about misleading data warn; banners about data tell its age")
  func tones() {
    #expect(Banner.allCases.filter { $0.tone == .warning } == [.erasureOwed, .staleData])
    #expect(Banner.allCases.filter { $0.tellsAge } == [.offline, .staleData])
  }
}
