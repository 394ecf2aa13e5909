import Base
import Store
import Supabase
import Vault

/// Links queued items to the queued items that they depend on.
struct ItemLinks: Rules {
  let parts: Parts

  /// The items that an item depends on: those it names, and those its columns refer to. An item that was
  /// `accepted` before may be of a kind, or have columns, which only another version of the app lists.
  /// They may refer to items, too.
  static func parents(of item: QueueItem, _ kind: QueueKind?, accepted: Bool = true) -> [UUID] {
    var parents = item.dependsOn
    for column in kind?.references ?? [] {
      if let id = item.payload[member: column]?.uuid { parents.append(id) }
    }
    if accepted {
      for (column, value) in item.payload.members where kind?.columns.contains(column) != true {
        if let id = value.uuid { parents.append(id) }
      }
    }
    return parents.filter { $0 != item.id }
  }

  /// Link the item to parents that are still queued. Returns true when there are any.
  func linkParents(
    of item: QueueItem, _ kind: QueueKind?, _ tag: [UInt8], _ owner: [UInt8],
    _ keys: KeyRing.Keys, accepted: Bool = true
  ) throws(Failure) -> Bool {
    var isLinked = false
    for parent in ItemLinks.parents(of: item, kind, accepted: accepted) {
      let parentTag = keys.itemTag(parent, owner)
      guard let row = try core.queue.find(parentTag) else { continue }
      // A row that is only to be changed is stored.
      let known = try row.read(try keys.queues.derived(for: owner))
      if known?.operation == .change { continue }
      if try core.dependencies.add(tag, on: parentTag) { isLinked = true }
    }
    return isLinked
  }

  /// Let a queued item wait for those that it depends on. One that is being sent, is parked or waits for
  /// its organisation stays as it is.
  func hold(_ tag: [UInt8], _ keys: KeyRing.Keys) throws(Failure) {
    guard let row = try core.queue.find(tag),
      let item = try row.read(try keys.queues.derived(for: row.owner)),
      try linkParents(of: item, core.configuration.backend.kind(item.kind), tag, row.owner, keys),
      row.state != .sending, row.state != .parked, row.state != .waiting(.organisation)
    else { return }
    try core.queue.transition(row.sequence, .waiting(.dependency))
  }

  // MARK: Links that damage has taken

  /// Whether items wait for others, and none of these is in the queue: nothing would end that. A link
  /// goes with its parent, so only damage does this, and one look at a file that was opened is enough.
  func areLost(of owner: [UInt8]) throws(Failure) -> Bool {
    if core.ownerOfKnownLinks == owner { return false }
    if try !core.queue.unlinked(of: owner, most: 1).isEmpty { return true }
    core.ownerOfKnownLinks = owner
    return false
  }

  /// Link such items again, as their sealed contents say. An item whose parents are no longer queued is
  /// sent, and so is one that cannot be read: the upload tells what becomes of it.
  func restore(of owner: [UInt8]) throws(Failure) {
    let keys = try core.keys()
    let key = try keys.queues.derived(for: owner)
    try core.queue.inSlices { (most) throws(Failure) in
      try core.database.transaction { () throws(Failure) in
        let unlinked = try core.queue.unlinked(of: owner, most: most)
        for tag in unlinked {
          guard let row = try core.queue.find(tag) else { continue }
          try core.dependencies.removeParents(of: tag)
          if let item = try row.read(key) {
            let kind = core.configuration.backend.kind(item.kind)
            if try linkParents(of: item, kind, tag, owner, keys) { continue }
          }
          try core.queue.transition(row.sequence, .pending)
        }
        return unlinked.count
      }
    }
    Log.line(.warning, "items waited for others that are not queued; they are linked again or sent")
  }
}
