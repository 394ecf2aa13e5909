import Base
import CPlatform
import Store

/// The names of an organisation's contacts, for searching. It exists in memory only. A lock drops
/// it, and so does every new generation of the session.
///
/// A contact matches when every word of the query is part of a word of its name or municipality, with
/// case and diacritics folded. The texts stand in blocks (`ContactBlock`), as the file holds them
/// sealed, and a search reads all of them. For the tens of thousands of contacts that an organisation
/// has, that is faster than a full-text index, which also cannot find one or two letters inside a word.
///
/// Rank: a contact that has a word as it is written, with its marks, comes before all that have only its
/// folded form. Then a word that begins a word of the name is better than one inside it, and both are better
/// than the municipality. The ranks of all words add up; equal contacts are ordered by name.
final class ContactIndex {
  /// A block that the file has; without content: that is removed there.
  struct Change {
    let number: Int64
    var stamp: Int64 = 0
    var block: ContactBlock?
  }

  let org: [UInt8]
  /// The version of the file that this mirrors; nil: SQLite does not tell it.
  let version: FileVersion?
  /// The blocks, by number.
  private var parts: [Change] = []

  init(org: [UInt8], version: FileVersion?) {
    self.org = org
    self.version = version
  }

  // MARK: Contents

  /// Rows of the file, also those that could not be read.
  var count: Int { parts.reduce(0) { $0 + ($1.block?.count ?? 0) } }

  var isEmpty: Bool { parts.allSatisfy { $0.block?.unreadable == $0.block?.count } }

  /// The block, if this has it with that stamp.
  func block(_ number: Int64, stamp: Int64) -> ContactBlock? {
    guard let at = parts.sortedPlace(of: number, { $0.number }), parts[at].stamp == stamp else {
      return nil
    }
    return parts[at].block
  }

  /// Add a block with a higher number than those before it.
  func append(_ change: Change) { parts.append(change) }

  // MARK: Searching

  private typealias Bytes = UnsafeBufferPointer<UInt8>

  /// A word of the query, folded and as it is written.
  private struct Word {
    let folded: Bytes
    let exact: Bytes
    /// Both are the same.
    let isPlain: Bool
  }

  /// How well a contact matches a word of the query; lower is better.
  private enum Fit {
    static var nameStart: UInt16 { 0 }
    static var insideName: UInt16 { 1 }
    static var placeStart: UInt16 { 2 }
    static var insidePlace: UInt16 { 3 }
    static var none: UInt16 { .max }
    /// Added to the rank for a word that only folds to what the contact has: more than all words together
    /// can have without it.
    static var folded: UInt16 { 256 }
  }
  private static var maxWords: Int { 32 }

  /// The best contacts, at most `limit`, and the number of all that match. An empty query matches all
  /// contacts; a query without letters or digits matches none.
  func search(_ query: String, limit: Int) -> (tags: [UUID], total: Int) {
    var folded: [UInt8] = []
    Folding.append(query, to: &folded)
    var exact: [UInt8] = []
    Folding.appendExact(query, to: &exact)
    if folded.isEmpty, !query.utf8.allSatisfy({ $0 == UInt8(ascii: " ") }) { return ([], 0) }
    var best = Best(limit: limit)
    var total = 0
    folded.withUnsafeBufferPointer { folded in
      exact.withUnsafeBufferPointer { exact in
        let words = ContactIndex.words(folded, exact)
        for part in parts {
          part.block?.forEach { record in
            guard record.isReadable else { return }
            let rank = ContactIndex.rank(record, words)
            if rank == Fit.none { return }
            total += 1
            best.take(record, rank)
          }
        }
      }
    }
    return (best.tags, total)
  }

  private static func rank(_ record: ContactBlock.Record, _ words: [Word]) -> UInt16 {
    var rank: UInt16 = 0
    for index in words.indices {
      let word = words[index]
      let its = fit(word.folded, record)
      if its == Fit.none { return Fit.none }
      // A name that begins with the query's first word comes before all others.
      if its == Fit.nameStart, index == 0, !starts(record, word.folded) { rank += 1 }
      rank += 2 * its
      if !hasExactly(word, record) { rank += Fit.folded }
    }
    return rank
  }

  /// The words of both forms of a query, at most `maxWords`. Both forms have the same number of words.
  private static func words(_ folded: Bytes, _ exact: Bytes) -> [Word] {
    var result: [Word] = []
    var (left, right) = (folded[...], exact[...])
    while result.count < maxWords, let word = nextWord(&left), let written = nextWord(&right) {
      result.append(
        Word(folded: word, exact: written, isPlain: word.elementsEqual(written)))
    }
    return result
  }

  /// Removes the first word of a form.
  private static func nextWord(_ form: inout Slice<Bytes>) -> Bytes? {
    guard !form.isEmpty else { return nil }
    form.removeFirst()
    let word = form.prefix { $0 != Folding.wordStart }
    form = form[word.endIndex...]
    return Bytes(rebasing: word)
  }

  private static func starts(_ record: ContactBlock.Record, _ word: Bytes) -> Bool {
    guard 1 + word.count <= record.nameCount else { return false }
    for at in 0..<word.count where record.searched[1 + at] != word[at] { return false }
    return true
  }

  /// Whether name or municipality have the word, which they match, as it is written.
  private static func hasExactly(_ word: Word, _ record: ContactBlock.Record) -> Bool {
    guard record.exactCount > 0 else { return word.isPlain }
    let text = Bytes(start: record.exact, count: record.exactCount)
    var from = 0
    while let at = position(of: word.exact, in: text, from: from) {
      let end = at + word.exact.count
      // Before a mark, the last letter is another one.
      if end == text.count || text[end] != Folding.markStart { return true }
      from = at + 1
    }
    return false
  }

  /// How well a word fits name and municipality. No match spans both, as the municipality's first byte is
  /// in no word.
  private static func fit(_ word: Bytes, _ record: ContactBlock.Record) -> UInt16 {
    let text = Bytes(start: record.searched, count: record.nameCount + record.placeCount)
    var result = Fit.none
    var from = 1
    while let at = position(of: word, in: text, from: from) {
      let isStart = text[at - 1] == Folding.wordStart
      if at < record.nameCount {
        if isStart { return Fit.nameStart }
        result = Fit.insideName
      } else {
        result = min(result, isStart ? Fit.placeStart : Fit.insidePlace)
        if isStart || result == Fit.insideName { return result }
      }
      from = at + 1
    }
    return result
  }

  /// Where a word next is in a text.
  private static func position(of word: Bytes, in text: Bytes, from: Int) -> Int? {
    guard let start = text.baseAddress else { return nil }
    let end = text.count - word.count
    var at = from
    while at <= end {
      guard let found = memchr(start + at, Int32(word[0]), end + 1 - at) else { return nil }
      at = UnsafeRawPointer(found) - UnsafeRawPointer(start)
      var same = 1
      while same < word.count, start[at + same] == word[same] { same += 1 }
      if same == word.count { return at }
      at += 1
    }
    return nil
  }
}

/// The contacts with the lowest ranks, in the order of ranks, then of names.
private struct Best {
  let limit: Int
  private var found: [(record: ContactBlock.Record, rank: UInt16)] = []

  init(limit: Int) { self.limit = limit }

  var tags: [UUID] { found.map { $0.record.tag } }

  mutating func take(_ record: ContactBlock.Record, _ rank: UInt16) {
    if found.count == limit {
      guard let last = found.last, Best.precedes((record, rank), last) else { return }
      found.removeLast()
    }
    let at = found.sortedPlace { Best.precedes($0, (record, rank)) }
    found.insert((record, rank), at: at)
  }

  private static func precedes(
    _ left: (record: ContactBlock.Record, rank: UInt16),
    _ right: (record: ContactBlock.Record, rank: UInt16)
  ) -> Bool {
    left.rank != right.rank ? left.rank < right.rank : left.record.precedes(right.record)
  }
}
