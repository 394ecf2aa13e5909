import Base
import Store
import Supabase
import Vault

struct OwnRow {
  let id: UUID
  let values: JSON
  let version: String?
}

final class OwnRowCache {
  init(_ core: Core, _ cache: CacheFile) {}
  func find(_ id: UUID, _ kind: QueueKind, _ org: UUID?, _ session: OpenSession) throws(Failure) -> OwnRow? { nil }
  func put(_ rows: [OwnRow], _ kind: QueueKind, _ org: UUID?, _ session: OpenSession, _ now: Instant) throws(Failure) {}
  func remove(_ ids: [UUID], _ kind: QueueKind, _ org: UUID?, _ session: OpenSession) throws(Failure) {}
}
