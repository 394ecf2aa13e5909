import Base
import CPlatform
import Store

/// Tells the other handles on the folder, here and in other processes, that this one changed the
/// main file. Their hosts poll then.
///
/// A change of the session's keys is told apart: a handle whose vault the key store cannot vouch for
/// drops it (`SessionKeys.followKeys`).
final class ChangeNotice {
  let path: String
  private let folder: String
  /// The folder as the host wrote it: a link on the way may lead to another one.
  private let given: String
  private var descriptor: Int32 {
    didSet { opened = platform_notice_identify(descriptor) }
  }
  private var opened: platform_notice_id
  /// The connection and the number of its changes at the last look.
  private var seen: (database: Database?, changes: Int32) = (nil, 0)
  private var hasNewKeys = false
  /// The file is held: a key is being erased.
  private var isHolding = false

  /// `given`: the folder's path as the host wrote it.
  init(folder: String, given: String) {
    self.folder = folder
    self.given = given
    path = folder + "/holdfast.notice"
    descriptor = platform_notice_open(path)
    opened = platform_notice_identify(descriptor)
    mark = platform_notice_mark(path, opened)
  }

  /// Also wakes the others: what this handle held is free now, also where a child of the process still
  /// has the file open.
  deinit {
    if isHolding { platform_notice_hold(descriptor, false) }
    platform_notice_close(descriptor)
    platform_places_free(places)
  }

  // MARK: Hearing

  /// What the others told so far. A transaction asks again: the call may have waited for its lock.
  var ear: (() -> platform_heard)?
  private(set) var heard = platform_heard()
  /// The mark of the file at the last look. Another one tells of the keys, also without a watch.
  private var mark: Int64 = -1
  /// The mark of a file at the path that cannot be used. It is not opened again: to close it would wake
  /// all who watch it.
  private var refused: UInt64?
  /// The marks of the folder, of those above it and of the links to it, which are only looked at
  /// without a watch.
  private var folders: [UInt64]?
  /// The marks of what could be moved, when nothing that was told before was lost; see `notePlaces`.
  private var places: OpaquePointer?
  /// Somebody else told of the keys while this handle did.
  private var hasMissed = false
  /// Another handle changed something since the last poll: the host should poll, whatever calls came
  /// between, because only a poll tells of another decision. A file that stays unusable tells so at each
  /// call, and urges once.
  var urgesPoll = false

  /// What is watched is not what is at `path`.
  private var isUnwatched = false
  /// The file, or a folder on its path, was replaced or moved. Another process may be locking where
  /// this handle does not hear it, and may die before it tells.
  private var isMoved = false
  /// The same may have happened: without a watch, that looks like a change of the keys.
  private var isMisled = false
  /// Another handle is erasing a key, or was when this one last looked; and that is a lock.
  private var isErasing = false
  private(set) var isLocking = false

  /// The user has come in by a proof, after the lock for which another handle still holds the file: it
  /// does not lock this session.
  func noteEntry() { isLocking = false }

  /// Another file may have the main file's name since `noteMainFile`. Without a watch, that must be looked at
  /// in each call.
  private(set) var mayHaveNewMainFile = true

  /// The main file that is open has its name, as far as the watch has told until now.
  func noteMainFile() { mayHaveNewMainFile = ear == nil || heard.is_blind }

  /// Every call asks the key store.
  var isDoubtful: Bool { isMoved || isErasing || isMisled }

  /// What a handle learns when it listens.
  struct News {
    var hasChanges = false
    var hasKeys = false
    /// Nobody told anything: the file stays unusable, as it was at the last look.
    var isRepeated = false
  }

  func take(_ told: platform_heard) -> News {
    var news = News(hasChanges: told.changes != heard.changes, hasKeys: told.keys != heard.keys)
    let hasMoved = told.moves != heard.moves
    let hasLost = told.losses != heard.losses
    if hasMoved || hasLost || told.is_blind || told.files != heard.files {
      mayHaveNewMainFile = true
    }
    if hasMoved {
      isMoved = true
      isUnwatched = true
    }
    if hasLost {
      isUnwatched = true
      if platform_places_moved(places, folder, given) {
        isMoved = true
        news.hasKeys = true
      }
    }
    heard = told
    // Who replaced the file, or keeps it from being opened, may hide that another handle locked.
    let (isToldOfKeys, wasUsable) = (news.hasKeys, mark >= 0)
    look()
    let staysUnusable = !wasUsable && mark < 0
    if isToldOfKeys || hasMissed || news.hasChanges, !staysUnusable { urgesPoll = true }
    if hasMissed { news.hasKeys = true }
    hasMissed = false
    if told.is_blind { lookAtFolders(&news) }
    news.isRepeated = staysUnusable && !isToldOfKeys && !news.hasChanges && !hasMoved
    if news.hasKeys {
      news.hasChanges = true
      isLocking = true
      if told.is_blind { isMisled = true }
    }
    // Before the key store is asked: who lets go has erased the key, or never will.
    if news.hasChanges || isErasing { isErasing = platform_notice_is_held(descriptor) }
    if !isErasing { isLocking = false }
    return news
  }

  func takeIsUnwatched() -> Bool {
    defer { isUnwatched = false }
    return isUnwatched
  }

  /// Look whether the file is still at the path, and what it tells. Use the one that is there now.
  private func look() {
    let now = platform_notice_mark(path, opened)
    if now != mark || now < 0 { hasMissed = true }
    guard now < 0 else {
      mark = now
      return
    }
    let there = platform_folder_mark(path, false)
    if refused == there { return }
    platform_notice_close(descriptor)
    descriptor = platform_notice_open(path)
    if isHolding { platform_notice_hold(descriptor, true) }
    let wasUsable = mark >= 0
    mark = platform_notice_mark(path, opened)
    // A system that opens nothing at the moment may do so at the next call.
    refused = mark < 0 && there != 0 && Int(descriptor) != PLATFORM_UNOPENED ? there : nil
    if wasUsable, mark < 0, platform_folder_mark(folder, false) != 0 {
      Log.line(.warning, "holdfast.notice cannot be used: every call asks the key store")
    }
    isUnwatched = true
    isMoved = true
  }

  private func lookAtFolders(_ news: inout News) {
    var now = [platform_folder_mark(folder, false), platform_folder_mark(folder, true)]
    if given != folder {
      now += [platform_folder_mark(given, false), platform_folder_mark(given, true)]
    }
    // A new file in the folder looks like a move, so this only leads to the key store.
    if let folders, folders != now { news.hasChanges = true }
    folders = now
  }

  /// The key store will have no key that a lock could erase. If the watch loses news from now on, the
  /// marks tell whether something was moved; the notice itself tells of the keys. `listen` takes what was
  /// told until the marks were read.
  func notePlaces(_ listen: () -> Void) {
    let now = platform_places_note(folder, given)
    listen()
    platform_places_free(places)
    places = now
  }

  // MARK: Telling

  /// The session's keys are new. The others are told after the call.
  func noteNewKeys() { hasNewKeys = true }

  /// The session's keys go. Other processes are told at once, so that a crash before the end of the
  /// call hides it from none; the handles of this process after the call. The file is held until the
  /// keys are gone: who looks meanwhile looks again.
  func giveLostKeys() {
    hasNewKeys = true
    look()
    hold()
    platform_notice_give_keys(descriptor)
    mark = platform_notice_mark(path, opened)
  }

  /// The key store loses its key, and the session stays open in memory.
  func giveWithdrawal() {
    hold()
    platform_notice_give(descriptor)
  }

  private func hold() {
    isHolding = true
    platform_notice_hold(descriptor, true)
  }

  /// After a call: tell the others by `tell`, which gets the open file and whether the keys changed, if
  /// the connection has changed rows since the last call. `owes`: the keys are not gone yet.
  func giveIfChanged(_ database: Database, owes: Bool, _ tell: (Int32, Bool) -> Void) {
    let changes = database.changes
    if hasNewKeys || seen.database !== database || seen.changes != changes {
      // Those who listen to the file that is there now did not hear what was told before.
      if hasNewKeys { look() }
      tell(descriptor, hasNewKeys)
      if hasNewKeys { mark = platform_notice_mark(path, opened) }
      seen = (database, changes)
      hasNewKeys = false
    }
    if isHolding, !owes {
      isHolding = false
      platform_notice_hold(descriptor, false)
    }
  }
}
