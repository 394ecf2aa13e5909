import Base
import Vault

/// The search texts of some contacts in one piece of memory: this is what a block of `contact_block`
/// holds sealed, and what a search reads.
///
/// The form, numbers least significant byte first:
///
/// - the form's number (1 byte), the indexed columns (1), zero (2), the number of records (4);
/// - the records, sorted by sort key, then by tag. Each has the contact's tag (16), the ends of its
///   sort key, folded name, folded municipality and exact text among the texts (4 each), and whether the
///   row could be read (4);
/// - the texts of all records, one after the other. The exact text is that of name and municipality, and
///   empty if it is the same as the folded ones.
///
/// A block that was sealed under other rules is not used: `form` changes with `Folding`, and the indexed
/// columns with the configuration's `needs_network`. `init` checks every number, so that no block, whatever
/// it holds, makes a search read elsewhere.
final class ContactBlock {
  static var form: UInt8 { 2 }
  fileprivate static var headerSize: Int { 8 }
  fileprivate static var recordSize: Int { 36 }
  /// Where the texts of so many records begin.
  fileprivate static func textStart(_ count: Int) -> Int { headerSize + recordSize * count }

  private let plain: SecretBytes
  let count: Int
  /// Records of rows that could not be read.
  let unreadable: Int

  /// nil: not a block of this form with these columns.
  init?(_ plain: SecretBytes, columns: UInt8) {
    let bytes = plain.bytes
    guard bytes.count >= ContactBlock.headerSize, bytes[0] == ContactBlock.form,
      bytes[1] == columns, bytes[2] == 0, bytes[3] == 0
    else { return nil }
    self.plain = plain
    count = Int(ContactBlock.number(bytes, 4))
    let room = bytes.count - ContactBlock.headerSize
    guard count <= room / ContactBlock.recordSize else { return nil }
    let textSize = room - count * ContactBlock.recordSize
    var end: UInt32 = 0
    var unreadable = 0
    for index in 0..<count {
      let at = ContactBlock.headerSize + index * ContactBlock.recordSize
      let key = ContactBlock.number(bytes, at + 16)
      let name = ContactBlock.number(bytes, at + 20)
      let place = ContactBlock.number(bytes, at + 24)
      let exact = ContactBlock.number(bytes, at + 28)
      let kind = ContactBlock.number(bytes, at + 32)
      guard end <= key, key <= name, name <= place, place <= exact, kind <= 1 else { return nil }
      unreadable += Int(kind)
      end = exact
    }
    guard Int(end) == textSize else { return nil }
    self.unreadable = unreadable
  }

  private static func number(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> UInt32 {
    UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: at, as: UInt32.self))
  }

  var sealable: UnsafeRawBufferPointer { plain.bytes }

  /// A contact and its texts; valid as long as the block.
  struct Record {
    fileprivate let tagStart: UnsafeRawPointer
    /// Sort key, folded name, folded municipality, exact text.
    let texts: UnsafePointer<UInt8>
    let keyCount: Int
    let nameCount: Int
    let placeCount: Int
    /// 0: the exact text is the folded one.
    let exactCount: Int
    let isReadable: Bool

    var key: UnsafeBufferPointer<UInt8> { .init(start: texts, count: keyCount) }
    /// Name and municipality.
    var searched: UnsafePointer<UInt8> { texts + keyCount }
    /// Name and municipality with their marks.
    var exact: UnsafePointer<UInt8> { searched + nameCount + placeCount }

    var tag: UUID {
      UUID(
        high: UInt64(bigEndian: tagStart.loadUnaligned(as: UInt64.self)),
        low: UInt64(bigEndian: tagStart.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }

    /// By sort key, then by tag.
    func precedes(_ other: Record) -> Bool {
      ContactBlock.precedes((key, tag), (other.key, other.tag))
    }
  }

  /// The records in their order.
  func forEach(_ body: (Record) -> Void) {
    guard let start = plain.bytes.baseAddress else { return }
    var record = start + ContactBlock.headerSize
    let texts = (record + count * ContactBlock.recordSize).assumingMemoryBound(to: UInt8.self)
    var from = 0
    for _ in 0..<count {
      let numbers = UnsafeRawBufferPointer(start: record, count: ContactBlock.recordSize)
      let key = Int(ContactBlock.number(numbers, 16))
      let name = Int(ContactBlock.number(numbers, 20))
      let place = Int(ContactBlock.number(numbers, 24))
      let exact = Int(ContactBlock.number(numbers, 28))
      body(
        Record(
          tagStart: record, texts: texts + from, keyCount: key - from, nameCount: name - key,
          placeCount: place - name, exactCount: exact - place,
          isReadable: ContactBlock.number(numbers, 32) == 0))
      from = exact
      record += ContactBlock.recordSize
    }
    withExtendedLifetime(plain) {}
  }

  fileprivate static func precedes(
    _ left: (key: UnsafeBufferPointer<UInt8>, tag: UUID),
    _ right: (key: UnsafeBufferPointer<UInt8>, tag: UUID)
  ) -> Bool {
    let count = min(left.key.count, right.key.count)
    var at = 0
    while at < count {
      let (mine, its) = (left.key[at], right.key[at])
      if mine != its { return mine < its }
      at += 1
    }
    if left.key.count != right.key.count { return left.key.count < right.key.count }
    return left.tag < right.tag
  }
}

/// A block that is being made or changed.
struct ContactBlockDraft {
  /// A contact's range in `texts`: sort key, folded name, folded municipality, exact text.
  private struct Entry {
    let tag: UUID
    var start = 0
    var keyCount = 0
    var nameCount = 0
    var placeCount = 0
    var exactCount = 0
    var isReadable = true

    var count: Int { keyCount + nameCount + placeCount + exactCount }
  }

  private var entries: [Entry] = []
  private var texts: [UInt8] = []

  /// `adding`: about so many bytes of texts.
  init(_ block: ContactBlock? = nil, adding size: Int = 0) {
    texts.reserveCapacity((block?.sealable.count ?? 0) + size)
    guard let block else { return }
    entries.reserveCapacity(block.count)
    block.forEach { record in
      let entry = Entry(
        tag: record.tag, start: texts.count, keyCount: record.keyCount,
        nameCount: record.nameCount, placeCount: record.placeCount,
        exactCount: record.exactCount, isReadable: record.isReadable)
      entries.append(entry)
      texts.append(contentsOf: UnsafeBufferPointer(start: record.texts, count: entry.count))
    }
  }

  /// Add a contact that the block does not have.
  mutating func add(_ tag: UUID, name: String, municipality: String) {
    var entry = Entry(tag: tag, start: texts.count)
    Folding.appendSortKey(of: name, to: &texts)
    entry.keyCount = texts.count - entry.start
    Folding.append(name, to: &texts)
    entry.nameCount = texts.count - entry.start - entry.keyCount
    Folding.append(municipality, to: &texts)
    entry.placeCount = texts.count - entry.start - entry.keyCount - entry.nameCount
    addExact(name, municipality, to: &entry)
    entries.append(entry)
  }

  private mutating func addExact(_ name: String, _ municipality: String, to entry: inout Entry) {
    let start = texts.count
    let folded = start - entry.nameCount - entry.placeCount..<start
    Folding.appendExact(name, to: &texts)
    Folding.appendExact(municipality, to: &texts)
    if texts[folded].elementsEqual(texts[start...]) {
      texts.removeLast(texts.count - start)
    }
    entry.exactCount = texts.count - start
  }

  /// Add a row that could not be read. No search finds it; it counts as a row of the block.
  mutating func addUnreadable(_ tag: UUID) {
    entries.append(Entry(tag: tag, start: texts.count, isReadable: false))
  }

  mutating func remove(_ tag: UUID) {
    if let at = entries.firstIndex(where: { $0.tag == tag }) { entries.remove(at: at) }
  }

  /// The block; nil when nothing is in it.
  func made(columns: UInt8) throws(Failure) -> ContactBlock? {
    guard !entries.isEmpty else { return nil }
    let size = entries.reduce(ContactBlock.textStart(entries.count)) { $0 + $1.count }
    let sorted = texts.withUnsafeBufferPointer { texts in
      func key(_ entry: Entry) -> (key: UnsafeBufferPointer<UInt8>, tag: UUID) {
        (
          UnsafeBufferPointer(rebasing: texts[entry.start..<entry.start + entry.keyCount]),
          entry.tag
        )
      }
      return entries.ordered { ContactBlock.precedes(key($0), key($1)) }
    }
    let plain = try SecretBytes.written(capacity: size, room: .heap) { room in
      write(sorted, columns, to: room)
      return size
    }
    return ContactBlock(plain, columns: columns)
  }

  private func write(
    _ sorted: [Entry], _ columns: UInt8, to room: UnsafeMutableRawBufferPointer
  ) {
    func put(_ value: Int, _ at: Int) {
      room.storeBytes(of: UInt32(clamping: value).littleEndian, toByteOffset: at, as: UInt32.self)
    }
    put(0, 0)
    room[0] = ContactBlock.form
    room[1] = columns
    put(sorted.count, 4)
    var at = ContactBlock.headerSize
    var end = 0
    let start = ContactBlock.textStart(sorted.count)
    texts.withUnsafeBytes { texts in
      for entry in sorted {
        room.storeBytes(of: entry.tag.high.bigEndian, toByteOffset: at, as: UInt64.self)
        room.storeBytes(of: entry.tag.low.bigEndian, toByteOffset: at + 8, as: UInt64.self)
        let text = UnsafeRawBufferPointer(rebasing: texts[entry.start..<entry.start + entry.count])
        UnsafeMutableRawBufferPointer(rebasing: room[(start + end)...]).copyMemory(from: text)
        end += entry.keyCount
        put(end, at + 16)
        end += entry.nameCount
        put(end, at + 20)
        end += entry.placeCount
        put(end, at + 24)
        end += entry.exactCount
        put(end, at + 28)
        put(entry.isReadable ? 0 : 1, at + 32)
        at += ContactBlock.recordSize
      }
    }
  }
}
