import Base
import Store
import Supabase
import Vault

/// Links queued items to the queued items that they depend on.
final class ItemLinks {
  private let core: Core

  init(_ core: Core) { self.core = core }

  /// Link the item to parents that are still queued: those it names, and those its columns refer to.
  /// Returns true when there are any.
  func linkParents(
    of item: QueueItem, _ kind: QueueKind, _ tag: [UInt8], _ owner: [UInt8],
    _ keys: KeyRing.Keys
  ) throws(Failure) -> Bool {
    var parents = item.dependsOn
    for column in kind.references {
      if let id = item.payload[member: column]?.uuid { parents.append(id) }
    }
    var isLinked = false
    for parent in parents where parent != item.id {
      let parentTag = keys.itemTag(parent, owner)
      guard try core.queue.find(parentTag) != nil else { continue }
      if try core.dependencies.add(tag, on: parentTag) { isLinked = true }
    }
    return isLinked
  }
}
