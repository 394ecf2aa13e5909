import Base
import Foundation
import TestSupport
import Testing

@testable import Store

/// Files are made byte by byte here; `SalvageTests` has files that SQLite made.
@Suite struct PageFileTests {
  let folder: TemporaryFolder
  var path: String { folder.path + "/pages.db" }

  init() throws { folder = try TemporaryFolder() }

  private func bigEndian(_ number: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
  }

  /// Pages filled with their number (from 1); the first begins with a header.
  private func writeFile(pageSize: Int, pages: Int, named size: [UInt8]? = nil) throws {
    var bytes: [UInt8] = []
    for number in 0..<pages {
      bytes += [UInt8](repeating: UInt8(number + 1), count: pageSize)
    }
    let stored = size ?? [UInt8(pageSize >> 8 & 0xFF), UInt8(pageSize & 0xFF)]
    bytes.replaceSubrange(0..<18, with: Array("SQLite format 3\0".utf8) + stored)
    try Data(bytes).write(to: URL(fileURLWithPath: path))
  }

  /// A frame of the log: page, the count that ends a commit (0: none), the page's bytes, the salt.
  private typealias Frame = (page: UInt32, commit: UInt32, fill: UInt8, salt: UInt8)

  private func writeLog(
    pageSize: Int, salt: UInt8, _ frames: [Frame], cut: Int = 0, magic: UInt32 = 0x377f_0682
  ) throws {
    var bytes = bigEndian(magic) + bigEndian(3_007_000) + bigEndian(UInt32(pageSize))
    bytes += bigEndian(0) + [UInt8](repeating: salt, count: 8) + bigEndian(0) + bigEndian(0)
    for frame in frames {
      bytes += bigEndian(frame.page) + bigEndian(frame.commit)
      bytes += [UInt8](repeating: frame.salt, count: 8) + bigEndian(0) + bigEndian(0)
      bytes += [UInt8](repeating: frame.fill, count: pageSize)
    }
    try Data(bytes.dropLast(cut)).write(to: URL(fileURLWithPath: path + "-wal"))
  }

  private func fill(_ file: PageFile, _ page: UInt32) -> UInt8? { file.page(page)?.last }

  @Test(arguments: [512, 1024, 4096, 32_768])
  func thePageSizeIsTheHeaders(size: Int) throws {
    try writeFile(pageSize: size, pages: 3)
    let file = PageFile(path: path)
    expect(file.pageSize, equals: size)
    expect(file.last, equals: 3)
    expect((1...3).map { fill(file, $0) }, equals: [1, 2, 3])
    expect(file.page(2)?.count, equals: size)
  }

  @Test func theLargestPageSizeIsStoredAs1() throws {
    try writeFile(pageSize: 65_536, pages: 1, named: [0, 1])
    expect(PageFile(path: path).pageSize, equals: 65_536)
  }

  @Test(arguments: [[0, 0], [0, 2], [1, 0], [3, 232], [255, 255]] as [[UInt8]])
  func aSizeThatSQLiteDoesNotAllowIsIgnored(stored: [UInt8]) throws {
    try writeFile(pageSize: 4096, pages: 2, named: stored)
    expect(PageFile(path: path).pageSize, equals: 4096)
  }

  @Test func pagesOutsideTheFileAreAbsent() throws {
    try writeFile(pageSize: 512, pages: 2)
    let file = PageFile(path: path)
    expect(file.page(0), equals: nil)
    expect(file.page(3), equals: nil)
    expect(file.page(.max), equals: nil)
  }

  @Test func anIncompleteLastPageCountsAndCannotBeRead() throws {
    try writeFile(pageSize: 512, pages: 2)
    let data = try Data(contentsOf: URL(fileURLWithPath: path))
    try data.dropLast(1).write(to: URL(fileURLWithPath: path))
    let file = PageFile(path: path)
    expect(file.last, equals: 2)
    expect(file.page(2), equals: nil)
    expect(fill(file, 1), equals: 1)
  }

  @Test func theLastCommittedImageInTheLogWins() throws {
    try writeFile(pageSize: 512, pages: 2)
    try writeLog(
      pageSize: 512, salt: 9,
      [(2, 0, 21, 9), (1, 2, 11, 9), (2, 2, 22, 9), (5, 5, 51, 9), (1, 0, 12, 9)])
    let file = PageFile(path: path)
    // The last frame ends no commit.
    expect(fill(file, 1), equals: 11)
    expect(fill(file, 2), equals: 22)
    expect(file.page(4), equals: nil)
    expect(fill(file, 5), equals: 51)
    expect(file.last, equals: 5)
  }

  @Test func framesOfAnOlderLogEndIt() throws {
    try writeFile(pageSize: 512, pages: 2)
    try writeLog(pageSize: 512, salt: 9, [(1, 2, 11, 9), (2, 2, 22, 8), (1, 2, 12, 9)])
    let file = PageFile(path: path)
    expect(fill(file, 1), equals: 11)
    expect(fill(file, 2), equals: 2)
  }

  @Test func aLogWithAnotherPageSizeIsIgnored() throws {
    try writeFile(pageSize: 512, pages: 2)
    try writeLog(pageSize: 1024, salt: 9, [(1, 2, 11, 9)])
    expect(fill(PageFile(path: path), 1), equals: 1)
  }

  /// Both byte orders of its checksums have a number of their own.
  @Test(arguments: [(0x377f_0682, 11), (0x377f_0683, 11), (0x377f_0680, 1), (0, 1)])
  func aFileThatIsNoLogIsIgnored(magic: UInt32, expected: UInt8) throws {
    try writeFile(pageSize: 512, pages: 2)
    try writeLog(pageSize: 512, salt: 9, [(1, 2, 11, 9)], magic: magic)
    expect(fill(PageFile(path: path), 1), equals: expected)
  }

  @Test func withoutAHeaderThePageSizeIsTheLogs() throws {
    try Data(count: 1024).write(to: URL(fileURLWithPath: path))
    try writeLog(pageSize: 512, salt: 9, [(2, 2, 22, 9)])
    let file = PageFile(path: path)
    expect(file.pageSize, equals: 512)
    expect(fill(file, 2), equals: 22)
  }

  @Test func anImageThatTheLogDoesNotHoldWholeIsAbsent() throws {
    try writeFile(pageSize: 512, pages: 2)
    try writeLog(pageSize: 512, salt: 9, [(1, 2, 11, 9), (2, 2, 22, 9)], cut: 1)
    let file = PageFile(path: path)
    expect(fill(file, 1), equals: 11)
    expect(file.page(2), equals: nil)
  }

  @Test func withoutAFileThereAreNoPages() {
    let file = PageFile(path: path)
    expect(file.last, equals: 0)
    expect(file.page(1), equals: nil)
  }
}
