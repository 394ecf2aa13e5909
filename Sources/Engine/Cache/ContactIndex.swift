import Base

/// The names of an organisation's contacts, for searching. It exists in memory only. A lock drops
/// it, and so does every new generation of the session.
///
/// A contact matches when every word of the query is part of a word of its name or municipality, with
/// case and diacritics folded. The texts of all contacts stand in one block of memory, and a search
/// reads it from end to end. For the tens of thousands of contacts that an organisation has, that is
/// faster than a full-text index, which also cannot find one or two letters inside a word.
///
/// Rank: a word that begins a word of the name is better than one inside it; both are better than the
/// municipality. The ranks of all words add up; equal contacts are ordered by name.
final class ContactIndex {
  /// A contact's range in `texts`: sort key, folded name, folded municipality.
  private struct Entry {
    let tag: UUID
    let start: Int32
    let keyCount: Int32
    let nameCount: Int32
    let placeCount: Int32

    var count: Int { Int(keyCount + nameCount + placeCount) }
  }

  let org: [UInt8]
  /// The file's `foreignVersion` that this mirrors.
  let version: Int64
  /// Sorted by name.
  private var entries: [Entry] = []
  private var texts: [UInt8] = []
  /// Bytes of `texts` that no entry uses any more.
  private var waste = 0

  init(org: [UInt8], version: Int64) {
    self.org = org
    self.version = version
  }

  // MARK: Contents

  var isEmpty: Bool { entries.isEmpty }

  /// Add at the end; call `sort()` afterwards.
  func append(_ tag: UUID, name: String, municipality: String) {
    entries.append(write(tag, name, municipality))
  }

  func sort() {
    texts.withUnsafeBufferPointer { texts in
      entries.sort { ContactIndex.precedes($0, $1, texts) }
    }
  }

  /// Add a contact, or replace its texts.
  func put(_ tag: UUID, name: String, municipality: String) {
    remove(tag)
    let entry = write(tag, name, municipality)
    let place = texts.withUnsafeBufferPointer { texts in
      var low = 0
      var high = entries.count
      while low < high {
        let middle = (low + high) / 2
        if ContactIndex.precedes(entries[middle], entry, texts) {
          low = middle + 1
        } else {
          high = middle
        }
      }
      return low
    }
    entries.insert(entry, at: place)
  }

  func remove(_ tag: UUID) {
    guard let at = entries.firstIndex(where: { $0.tag == tag }) else { return }
    waste += entries[at].count
    entries.remove(at: at)
  }

  /// Most of the memory belongs to replaced texts: build the index anew.
  var isWasteful: Bool { waste > 65_536 && waste > texts.count / 2 }

  private func write(_ tag: UUID, _ name: String, _ municipality: String) -> Entry {
    let start = texts.count
    Folding.appendSortKey(of: name, to: &texts)
    let key = texts.count
    Folding.append(name, to: &texts)
    let place = texts.count
    Folding.append(municipality, to: &texts)
    return Entry(
      tag: tag, start: Int32(clamping: start), keyCount: Int32(clamping: key - start),
      nameCount: Int32(clamping: place - key), placeCount: Int32(clamping: texts.count - place))
  }

  private static func precedes(
    _ left: Entry, _ right: Entry, _ texts: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    let count = min(left.keyCount, right.keyCount)
    var at: Int32 = 0
    while at < count {
      let (mine, its) = (texts[Int(left.start + at)], texts[Int(right.start + at)])
      if mine != its { return mine < its }
      at += 1
    }
    if left.keyCount != right.keyCount { return left.keyCount < right.keyCount }
    return left.tag < right.tag
  }

  // MARK: Searching

  /// How well a contact matches a word of the query; lower is better.
  private enum Fit {
    static var nameStart: UInt8 { 0 }
    static var insideName: UInt8 { 1 }
    static var placeStart: UInt8 { 2 }
    static var insidePlace: UInt8 { 3 }
    static var none: UInt8 { 255 }
  }
  private static var maxWords: Int { 32 }

  /// The best contacts, at most `limit`, and the number of all that match. An empty query matches all
  /// contacts; a query without letters or digits matches none.
  func search(_ query: String, limit: Int) -> (tags: [UUID], total: Int) {
    var folded: [UInt8] = []
    Folding.append(query, to: &folded)
    let words = ContactIndex.words(of: folded)
    if words.isEmpty, !query.utf8.allSatisfy({ $0 == UInt8(ascii: " ") }) { return ([], 0) }
    var ranks = [UInt8](repeating: 0, count: entries.count)
    var total = 0
    texts.withUnsafeBufferPointer { texts in
      folded.withUnsafeBufferPointer { folded in
        for (index, entry) in entries.enumerated() {
          let name = Int(entry.start + entry.keyCount)
          let place = name + Int(entry.nameCount)
          let end = place + Int(entry.placeCount)
          var rank: UInt8 = 0
          for word in words {
            let part = UnsafeBufferPointer(rebasing: folded[word])
            var fit = ContactIndex.fit(
              part, UnsafeBufferPointer(rebasing: texts[name..<place]), Fit.nameStart,
              Fit.insideName)
            if fit != Fit.nameStart {
              fit = min(
                fit,
                ContactIndex.fit(
                  part, UnsafeBufferPointer(rebasing: texts[place..<end]), Fit.placeStart,
                  Fit.insidePlace))
            }
            if fit == Fit.none {
              rank = Fit.none
              break
            }
            // A name that begins with the query's first word comes before all others.
            if fit == Fit.nameStart, word.lowerBound == 1, !ContactIndex.starts(texts, name, part) {
              rank += 1
            }
            rank += 2 * fit
          }
          ranks[index] = rank
          if rank != Fit.none { total += 1 }
        }
      }
    }
    return (best(ranks, min(limit, total)), total)
  }

  /// The ranges of the words of a folded text, at most `maxWords`.
  private static func words(of folded: [UInt8]) -> [Range<Int>] {
    var result: [Range<Int>] = []
    var start = 0
    while start < folded.count, result.count < maxWords {
      start += 1
      var end = start
      while end < folded.count, folded[end] != Folding.wordStart { end += 1 }
      if end > start { result.append(start..<end) }
      start = end
    }
    return result
  }

  /// The entries with the lowest ranks, in the order of names.
  private func best(_ ranks: [UInt8], _ limit: Int) -> [UUID] {
    var result: [UUID] = []
    result.reserveCapacity(limit)
    var rank: UInt8 = 0
    while result.count < limit, rank != Fit.none {
      for (index, its) in ranks.enumerated() where its == rank {
        result.append(entries[index].tag)
        if result.count == limit { break }
      }
      rank += 1
    }
    return result
  }

  private static func starts(
    _ texts: UnsafeBufferPointer<UInt8>, _ name: Int, _ word: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    guard name + 1 + word.count <= texts.count else { return false }
    for at in 0..<word.count where texts[name + 1 + at] != word[at] { return false }
    return true
  }

  /// Returns `start` when `word` begins a word of `text`, `inside` when it is within one, else none.
  private static func fit(
    _ word: UnsafeBufferPointer<UInt8>, _ text: UnsafeBufferPointer<UInt8>, _ start: UInt8,
    _ inside: UInt8
  ) -> UInt8 {
    let first = word[0]
    var result = Fit.none
    var at = 1
    while at + word.count <= text.count {
      if text[at] == first {
        var same = 1
        while same < word.count, text[at + same] == word[same] { same += 1 }
        if same == word.count {
          if text[at - 1] == Folding.wordStart { return start }
          result = inside
        }
      }
      at += 1
    }
    return result
  }
}
