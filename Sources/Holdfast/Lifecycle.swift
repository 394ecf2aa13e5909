import Base
public import CHoldfast
import CPlatform
import Engine
import Store
import Vault

@c @implementation
public func holdfast_version() -> UnsafePointer<CChar>? {
  UnsafeRawPointer(Version.text.utf8Start).assumingMemoryBound(to: CChar.self)
}

@c @implementation
public func holdfast_version_number() -> Int32 {
  Int32(HOLDFAST_VERSION_NUMBER)
}

@c @implementation
public func holdfast_call(
  _ self: OpaquePointer?, _ operation: UnsafePointer<CChar>?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  if let operation = Operation(named: operation) {
    return Boundary.call(self, operation, request, reply)
  }
  return Boundary.call(self, nil, reply) { (_, _) throws(Failure) in
    throw Operation.unknown(operation)
  }
}

@c @implementation
public func holdfast_build_info() -> UnsafePointer<CChar>? {
  platform_build_info(
    holdfast_version(), Version.abi, Version.sqlite, Version.libsodium, Version.jansson)
}

@c @implementation
public func holdfast_open(
  _ config: UnsafePointer<CChar>?, _ keystore: UnsafePointer<holdfast_keystore>?,
  _ self: UnsafeMutablePointer<OpaquePointer?>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  reply?.pointee = nil
  self?.pointee = nil
  platform_install_allocator()
  platform_memory_begin()
  platform_patience_begin()
  do throws(Failure) {
    guard let self else {
      throw Failure(.requestMissingField, "self must not be NULL", field: "/self")
    }
    guard !platform_callback_runs() else {
      throw Failure(.handleReentered, "a callback must not call the library")
    }
    // First, so that every later failure releases the context.
    let store = try keyStore(keystore)
    let configuration = try Configuration(try Boundary.read(config))
    try disownCopies()
    let engine = try Engine(configuration, keyStore: store)
    let object = Unmanaged.passRetained(engine).toOpaque()
    let handle = platform_handle_new(object, configuration.dataFolder)
    guard handle != 0 else {
      Boundary.release(object)
      throw Failure(.handleTooMany, "too many handles or descriptors are open")
    }
    // What fails here is told by the first holdfast_next().
    var screen = JSON.null
    _ = Boundary.call(OpaquePointer(bitPattern: handle), nil, nil, room: .reserve) {
      (engine, _) throws(Failure) in
      screen = try engine.firstScreen()
      return [:]
    }
    platform_memory_begin()
    let status: Int32
    do throws(Failure) {
      status = try Boundary.respond(
        [
          "version": .string(Version.text.description), "recovered": .bool(engine.recovered),
          "keystore": JSON(engine.keyStoreName), "unlock_prompt": engine.unlockPrompt,
          "screen": screen,
        ], .ok, reply)
    } catch {
      Boundary.release(platform_handle_close(handle))
      throw error
    }
    if engine.takeChange() { platform_handle_tell(handle) }
    self.pointee = OpaquePointer(bitPattern: handle)
    return status
  } catch {
    return Boundary.fail(opening(error), reply)
  }
}

/// In a forked process: close what the fork has copied of the parent's handles.
private func disownCopies() throws(Failure) {
  let isSafe = platform_handles_disown { object in
    guard let object else { return }
    Unmanaged<Engine>.fromOpaque(object).takeUnretainedValue().disown()
  }
  guard isSafe else {
    throw Failure(
      .handleForked,
      "another thread was inside a call when this process was forked: start a new one")
  }
}

/// The failure of an open. Where descriptors ran out on the way, the storage is sound.
private func opening(_ failure: Failure) -> Failure {
  guard failure.code == .storageFailed, let problem = failure.detail?.int("errno"),
    Database.isOutOfFiles(Int(problem))
  else { return failure }
  return Failure(
    .handleTooMany, "too many handles or descriptors are open", detail: failure.detail)
}

private func keyStore(
  _ given: UnsafePointer<holdfast_keystore>?
) throws(Failure) -> (any KeyStore)? {
  guard let given else { return nil }
  // Only `size` may be read before the size of the struct is known.
  guard UnsafeRawPointer(given).load(as: Int.self) >= MemoryLayout<holdfast_keystore>.size else {
    throw Failure(
      .requestInvalidValue, "size is not sizeof(holdfast_keystore)", field: "/keystore/size")
  }
  let it = given.pointee
  guard let load = it.load, let save = it.save, let erase = it.erase else {
    it.destroy?(it.context)
    throw Failure(
      .requestMissingField, "load, save and erase are required", field: "/keystore")
  }
  return HostKeyStore(
    context: it.context, load: load, save: save, erase: erase, destroy: it.destroy)
}

@c @implementation
public func holdfast_close(_ self: OpaquePointer?) {
  Boundary.release(platform_handle_close(UInt(bitPattern: self)))
}

@c @implementation
public func holdfast_free(_ reply: UnsafeMutableRawPointer?) { platform_reply_free(reply) }

@c @implementation
public func holdfast_live_count() -> Int64 { platform_live() }

@c @implementation
public func holdfast_log(
  _ level: Int32, _ fn: holdfast_log_fn?, _ context: UnsafeMutableRawPointer?
) {
  platform_log_set(level, fn, context)
}

@c @implementation
public func holdfast_next(
  _ self: OpaquePointer?, _ what: Int32, _ timeout_ms: Int32,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  reply?.pointee = nil
  guard let what = Wanted(rawValue: Int(what)), let reply else {
    return Boundary.call(self, nil, reply) { (_, _) throws(Failure) in
      throw Failure(
        .requestInvalidValue, "HOLDFAST_NEXT_ALL, _NEWS or _REQUESTS is expected, and a reply",
        field: "/what")
    }
  }
  let handle = UInt(bitPattern: self)
  let start = platform_monotonic_ms()
  if timeout_ms != 0 { _ = Boundary.listen(handle, what) }
  while true {
    var isNothing = false
    var wakeMS: Int64?
    var longestMS = Int64.max
    let status = Boundary.call(self, nil, reply, room: .reserve) { (engine, _) throws(Failure) in
      if let found = try engine.next(what) {
        isNothing = false
        return found
      }
      wakeMS = try engine.wakeIn(what)
      longestMS = engine.longestWaitMS
      isNothing = true
      return ["wake_in_ms": JSON(wakeMS)]
    }
    // A host asks again whatever the last call returned. Where storage fails, that must not keep it busy; a
    // busy storage has made it wait already.
    let hasFailed = status != Status.ok.rawValue
    switch status {
    case Status.closed.rawValue, Status.forked.rawValue, Status.busy.rawValue: return status
    default: if !hasFailed, !isNothing { return status }
    }
    let passed = platform_monotonic_ms() - start
    let left = timeout_ms < 0 ? Int64(Int32.max) : Int64(timeout_ms) - passed
    var object: UnsafeMutableRawPointer?
    if left <= 0 { return status }
    if !hasFailed {
      platform_reply_free(reply.pointee)
      reply.pointee = nil
    }
    guard platform_handle_enter(handle, false, &object) == PLATFORM_ENTERED else {
      platform_reply_free(reply.pointee)
      reply.pointee = nil
      return Boundary.call(self, nil, reply) { (_, _) throws(Failure) in [:] }
    }
    // Wait at least 10 ms: a manual clock stands still, and the loop must not spin.
    let pause = hasFailed ? 1000 : max(10, min(wakeMS ?? Int64.max, longestMS))
    platform_handle_wait(handle, Int32(what.rawValue), Int32(clamping: min(left, pause)))
    Boundary.release(platform_handle_leave(handle, false))
    if hasFailed { return status }
  }
}

@c @implementation
public func holdfast_wake_fd(_ self: OpaquePointer?, _ what: Int32) -> Int32 {
  guard let what = Wanted(rawValue: Int(what)) else { return -1 }
  return Boundary.listen(UInt(bitPattern: self), what)
}
