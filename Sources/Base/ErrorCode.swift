/// The classes of failure, with the numbers of the header's `HOLDFAST_*`.
public enum Status: Int32, Sendable {
  case ok = 0
  case invalid = 1
  case state = 2
  case notFound = 3
  case conflict = 4
  case keyStore = 5
  case storage = 6
  case full = 7
  case busy = 8
  case closed = 9
  case forked = 10
  case noMemory = 11
  case internalDefect = 12
}

/// Every error code that a host can receive: stable, in the form `noun.reason`. The schema lists
/// the same codes.
public enum ErrorCode: String, CaseIterable, Sendable {
  case requestNotJSON = "request.not_json"
  case requestNotAnObject = "request.not_an_object"
  case requestTooDeep = "request.too_deep"
  case requestTooManyValues = "request.too_many_values"
  case requestDuplicateKey = "request.duplicate_key"
  case requestUnknownField = "request.unknown_field"
  case requestMissingField = "request.missing_field"
  case requestWrongType = "request.wrong_type"
  case requestInvalidValue = "request.invalid_value"
  case requestUnknownOperation = "request.unknown_operation"

  case sessionNone = "session.none"
  case sessionLocked = "session.locked"
  case sessionRefreshing = "session.refreshing"
  case sessionInvalid = "session.invalid"
  case sessionConfirmUnsent = "session.confirm_unsent"

  case signInUnknownMethod = "sign_in.unknown_method"
  case signInForeignCallback = "sign_in.foreign_callback"
  case signInStateMismatch = "sign_in.state_mismatch"
  case signInExpired = "sign_in.expired"
  case signInCancelled = "sign_in.cancelled"

  case orgNone = "org.none"
  case orgNotAMember = "org.not_a_member"
  case orgRevoked = "org.revoked"
  case orgDisabled = "org.disabled"
  case orgUnknownRole = "org.unknown_role"

  case queueUnknownKind = "queue.unknown_kind"
  case queueInvalidID = "queue.invalid_id"
  case queueInvalidPayload = "queue.invalid_payload"
  case queueUnknownColumn = "queue.unknown_column"
  case queueUnknownDependency = "queue.unknown_dependency"
  case queueItemTooLarge = "queue.item_too_large"
  case queueIDTaken = "queue.id_taken"
  case queueNotFound = "queue.not_found"
  case queueInFlight = "queue.in_flight"
  case queueChanged = "queue.changed"

  case contactNotFound = "contact.not_found"
  case clockNotManual = "clock.not_manual"
  case configNotConfigured = "config.not_configured"

  case keyStoreLocked = "keystore.locked"
  case keyStoreFailed = "keystore.failed"
  case keyStoreKeyLost = "keystore.key_lost"

  case storageFailed = "storage.failed"
  case storageReadOnly = "storage.read_only"
  case storageNewer = "storage.newer_version"
  case storageNotPrivate = "storage.not_private"
  case storageDamaged = "storage.damaged"
  case storageFull = "storage.full"
  case storageBusy = "storage.busy"

  case handleReentered = "handle.reentered"
  /// Only the HTTP driver answers with it.
  case handleBusy = "handle.busy"
  case handleClosed = "handle.closed"
  case handleForked = "handle.forked"
  case handleTooMany = "handle.too_many"
  case memoryExhausted = "memory.exhausted"
  case internalDefect = "internal.defect"

  /// The class of the error, which is the status that the call returns.
  public var status: Status {
    switch self {
    case .requestNotJSON, .requestNotAnObject, .requestTooDeep, .requestTooManyValues,
      .requestDuplicateKey, .requestUnknownField, .requestMissingField, .requestWrongType,
      .requestInvalidValue, .requestUnknownOperation,
      .sessionInvalid, .signInUnknownMethod, .signInForeignCallback, .signInStateMismatch,
      .signInExpired, .signInCancelled, .queueUnknownKind, .queueInvalidID, .queueInvalidPayload,
      .queueUnknownColumn, .queueUnknownDependency, .queueItemTooLarge:
      return .invalid
    case .sessionNone, .sessionLocked, .sessionRefreshing, .orgNone, .orgRevoked, .orgDisabled,
      .orgUnknownRole,
      .queueInFlight, .queueChanged, .clockNotManual, .configNotConfigured:
      return .state
    case .orgNotAMember, .queueNotFound, .contactNotFound: return .notFound
    case .sessionConfirmUnsent, .queueIDTaken: return .conflict
    case .keyStoreLocked, .keyStoreFailed, .keyStoreKeyLost: return .keyStore
    case .storageFailed, .storageReadOnly, .storageNewer, .storageNotPrivate, .storageDamaged:
      return .storage
    case .storageFull: return .full
    case .storageBusy, .handleReentered, .handleBusy: return .busy
    case .handleClosed: return .closed
    case .handleForked: return .forked
    case .handleTooMany, .memoryExhausted: return .noMemory
    case .internalDefect: return .internalDefect
    }
  }

  /// Whether the same call may succeed later without a change by the host.
  public var retryable: Bool {
    switch self {
    case .sessionRefreshing, .queueInFlight, .keyStoreLocked, .keyStoreFailed,
      .storageFailed, .storageFull, .storageReadOnly, .storageBusy, .memoryExhausted:
      return true
    default: return false
    }
  }
}
