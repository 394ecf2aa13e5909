import Base
import CPlatform
import Engine

typealias Text = UnsafePointer<CChar>
typealias ReplyOut = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>

/// Translates between the C API and the engine: handles, JSON, status codes. No decision is made
/// here.
enum Boundary {
  /// One call: enter the handle, read the request, run, write the reply. `keeps`: the request is a response
  /// to a request, which is kept whatever becomes of the call. `locks`: see `Engine.call`, `asks`:
  /// `Operation.asks`.
  @inline(never)
  static func call(
    _ handle: OpaquePointer?, _ request: Text?, _ reply: ReplyOut?,
    _ dialect: JSON.Dialect = .strict, room: Room = .ordinary, keeps: Bool = false,
    locks: Bool = false, asks: Bool = false, _ body: (Engine, JSON) throws(Failure) -> JSON
  ) -> Int32 {
    reply?.pointee = nil
    let value = UInt(bitPattern: handle)
    var object: UnsafeMutableRawPointer?
    let entry = platform_handle_enter(value, true, &object)
    guard entry == PLATFORM_ENTERED, let object else { return refuse(entry, value, reply) }
    let engine = Unmanaged<Engine>.fromOpaque(object).takeUnretainedValue()
    let isQuiet = asks && engine.isOpen
    let status = run(engine, request, reply, dialect, room, keeps, locks, body)
    let hasChanged = engine.takeChange()
    if hasChanged { platform_handle_tell(value) }
    if engine.isAwaited, !isQuiet || hasChanged || engine.urgesLook {
      platform_handle_signal(value, engine.wanting())
    }
    release(platform_handle_leave(value, true))
    return status
  }

  /// One operation; see `Engine.run`.
  @inline(never)
  static func call(
    _ handle: OpaquePointer?, _ operation: Operation, _ request: Text?, _ reply: ReplyOut?
  ) -> Int32 {
    call(
      handle, request, reply, operation.dialect, room: operation.room,
      keeps: operation == .complete, locks: operation == .sessionLock, asks: operation.asks
    ) {
      (engine, request) throws(Failure) in try engine.run(operation, request)
    }
  }

  /// A reader begins to wait: its descriptor, which is returned, is raised from now on while it should ask.
  static func listen(_ handle: UInt, _ what: Wanted) -> Int32 {
    var object: UnsafeMutableRawPointer?
    guard platform_handle_enter(handle, true, &object) == PLATFORM_ENTERED, let object else {
      return -1
    }
    let engine = Unmanaged<Engine>.fromOpaque(object).takeUnretainedValue()
    let descriptor = platform_handle_descriptor(handle, Int32(what.rawValue))
    if engine.await(what) { platform_handle_signal(handle, engine.wanting()) }
    release(platform_handle_leave(handle, true))
    return descriptor
  }

  // Inlined into every operation it would cost 13 KB.
  @inline(never)
  private static func run(
    _ engine: Engine, _ request: Text?, _ reply: ReplyOut?, _ dialect: JSON.Dialect, _ room: Room,
    _ keeps: Bool, _ locks: Bool, _ body: (Engine, JSON) throws(Failure) -> JSON
  ) -> Int32 {
    platform_memory_begin()
    platform_patience_begin()
    var isKept = false
    do throws(Failure) {
      var json = try read(request, dialect)
      // Bindings write an absent request as null.
      if json.isNull { json = [:] }
      if keeps {
        try engine.keepResponse(json)
        isKept = true
      }
      let result = try engine.call(mayUseReserve: room == .reserve, locks: locks) {
        () throws(Failure) in try body(engine, json)
      }
      let status = try respond(result, .ok, reply)
      engine.replyWasMade()
      return status
    } catch {
      // A later call works the response off.
      if isKept, let status = try? respond([:], .ok, reply) { return status }
      return fail(error, reply)
    }
  }

  /// The room on the disk that a call may use. The reserve is for all calls but those that add items.
  enum Room { case ordinary, reserve }

  /// Parses the configuration or a request. NULL and "" mean an empty object. The reader of the fields
  /// refuses what is no object.
  static func read(_ request: Text?, _ dialect: JSON.Dialect = .strict) throws(Failure) -> JSON {
    guard let request, request.pointee != 0 else { return [:] }
    var count = 0
    while request[count] != 0 { count += 1 }
    let text = UnsafeRawBufferPointer(start: request, count: count)
    // A server's answer that the host passes on, one level below: {"session":{"user":{"id":…}}}.
    if dialect == .tolerant { return try JSON.receive(text, levels: 3).value }
    return try JSON.parse(text, dialect, scalars: true)
  }

  /// Hands a reply to the host, as text that it releases with `holdfast_free`.
  static func respond(_ json: JSON, _ status: Status, _ reply: ReplyOut?) throws(Failure) -> Int32 {
    guard let reply else { return status.rawValue }
    let text = try json.text()
    guard let start = text.bytes.baseAddress,
      let copy = platform_reply(start.assumingMemoryBound(to: CChar.self), text.count)
    else { throw Failure(.memoryExhausted, "no memory for the reply") }
    reply.pointee = copy
    return status.rawValue
  }

  /// Hands the error reply of a failure to the host.
  static func fail(_ found: Failure, _ reply: ReplyOut?) -> Int32 {
    // The failure may be a consequence of the lack of memory; report the cause.
    let failure =
      platform_memory_exhausted() ? Failure(.memoryExhausted, "no memory for JSON") : found
    platform_memory_begin()
    Log.line(.info, "refused: \(failure.code.rawValue)")
    let status = failure.code.status
    return (try? respond(failure.reply, status, reply)) ?? Status.noMemory.rawValue
  }

  private static func refuse(
    _ entry: platform_entry, _ handle: UInt, _ reply: ReplyOut?
  ) -> Int32 {
    switch entry {
    case PLATFORM_FORKED:
      return fail(Failure(.handleForked, "the handle belongs to the parent process"), reply)
    case PLATFORM_REENTERED:
      return fail(Failure(.handleReentered, "a callback must not call the library"), reply)
    default:
      let text: StaticCString =
        handle == 0
        ? "the handle is NULL: look at what holdfast_open answered" : "the handle is closed"
      return fail(Failure(.handleClosed, text), reply)
    }
  }

  /// Closes and releases the engine of a closed handle. The last user of the handle calls this.
  static func release(_ object: UnsafeMutableRawPointer?) {
    guard let object else { return }
    platform_patience_begin()
    let engine = Unmanaged<Engine>.fromOpaque(object)
    engine.takeUnretainedValue().close()
    engine.release()
  }
}
