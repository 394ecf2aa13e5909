import Base
import Vault

/// What a poll hands out: the requests for the host, and those that nobody needs any more.
extension RequestedKeys {
  /// The requests that the host has not got yet. `prompt`: the text for the user.
  func takeOutbox(prompt: JSON) throws(Failure) -> JSON {
    var requests: [(KeyName, KeyRequest)] = []
    for entry in entries {
      if let queued = entry.queued { requests.append((entry.name, queued)) }
    }
    requests.sort { $0.1.id < $1.1.id }
    let result = JSON.array([])
    for (name, request) in requests {
      let isBiometric = name.kind == .biometric
      var (kind, value, shown): (StaticCString, JSON, JSON) = ("load", .null, .null)
      switch request.task {
      case .load: if isBiometric { shown = prompt }
      case .check, .checkErased: break
      case .save(let key): (kind, value) = ("save", try key.base64)
      case .erase: kind = "erase"
      }
      result.append([
        "id": .int(request.id), "operation": JSON(kind),
        "name": .string(name.text),
        "protection": isBiometric ? "biometric" : "device", "value": value,
        "prompt": shown, "timeout_ms": .int(RequestedKeys.timeoutMS),
      ])
    }
    let deadlineMS = nowMS + RequestedKeys.timeoutMS
    for (_, request) in requests { (request.stage, request.deadlineMS) = (.taken, deadlineMS) }
    revision.advance()
    return result
  }

  /// The requests that the host has, and nobody needs any more.
  func takeWithdrawn() -> JSON {
    let ids = JSON.array([])
    for entry in entries {
      guard let load = entry.withdrawn, load.notice == .queued else { continue }
      load.notice = .taken
      ids.append(.int(load.id))
    }
    return ids
  }

  /// The reply of this call was lost: keep its requests for the next poll.
  func restoreOutbox() {
    for at in entries.indices {
      entries[at].operation?.restore()
      entries[at].withdrawn?.restore()
    }
    revision.advance()
  }
}
