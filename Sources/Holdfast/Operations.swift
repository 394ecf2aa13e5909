// One exported function per operation of holdfast.h: request in, reply out. The compiler checks
// every signature against the header.
import Base
import CHoldfast
import Engine

@c @implementation
public func holdfast_clock_set(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.setClock(request)
  }
}

@c @implementation
public func holdfast_session_start(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.sessionStart(request)
  }
}

@c @implementation
public func holdfast_sign_in_begin(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.signInBegin(request)
  }
}

@c @implementation
public func holdfast_sign_in_complete(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.signInComplete(request)
  }
}

@c @implementation
public func holdfast_sign_in_cancel(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.signInCancel(request)
  }
}

@c @implementation
public func holdfast_session_resume(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.sessionResume(request)
  }
}

@c @implementation
public func holdfast_session_unlock(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.sessionUnlock(request)
  }
}

@c @implementation
public func holdfast_session_lock(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply, room: .reserve) { (engine, request) throws(Failure) in
    try engine.sessionLock(request)
  }
}

@c @implementation
public func holdfast_session_background(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply, room: .reserve) { (engine, request) throws(Failure) in
    try engine.sessionBackground(request)
  }
}

@c @implementation
public func holdfast_session_foreground(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.sessionForeground(request)
  }
}

@c @implementation
public func holdfast_session_status(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.sessionStatus(request)
  }
}

@c @implementation
public func holdfast_session_logout(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply, room: .reserve) { (engine, request) throws(Failure) in
    try engine.sessionLogout(request)
  }
}

@c @implementation
public func holdfast_org_list(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.orgList(request)
  }
}

@c @implementation
public func holdfast_org_select(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.orgSelect(request)
  }
}

@c @implementation
public func holdfast_route_check(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.routeCheck(request)
  }
}

@c @implementation
public func holdfast_queue_add(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply, .exact) { (engine, request) throws(Failure) in
    try engine.queueAdd(request)
  }
}

@c @implementation
public func holdfast_queue_list(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.queueList(request)
  }
}

@c @implementation
public func holdfast_queue_get(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.queueGet(request)
  }
}

@c @implementation
public func holdfast_queue_edit(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply, .exact) { (engine, request) throws(Failure) in
    try engine.queueEdit(request)
  }
}

@c @implementation
public func holdfast_queue_cancel(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply, room: .reserve) { (engine, request) throws(Failure) in
    try engine.queueCancel(request)
  }
}

@c @implementation
public func holdfast_queue_retry(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.queueRetry(request)
  }
}

@c @implementation
public func holdfast_queue_export(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.queueExport(request)
  }
}

@c @implementation
public func holdfast_queue_explain(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.queueExplain(request)
  }
}

@c @implementation
public func holdfast_contact_search(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.contactSearch(request)
  }
}

@c @implementation
public func holdfast_contact_get(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.contactGet(request)
  }
}

@c @implementation
public func holdfast_summary_get(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.summaryGet(request)
  }
}

@c @implementation
public func holdfast_network_set(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.setNetwork(request)
  }
}

@c @implementation
public func holdfast_sync_now(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.syncNow(request)
  }
}

@c @implementation
public func holdfast_sync_status(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply) { (engine, request) throws(Failure) in
    try engine.syncStatus(request)
  }
}

@c @implementation
public func holdfast_poll(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply, room: .reserve) { (engine, request) throws(Failure) in
    try engine.poll(request)
  }
}

@c @implementation
public func holdfast_complete(
  _ self: OpaquePointer?, _ request: UnsafePointer<CChar>?,
  _ reply: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  Boundary.call(self, request, reply, room: .reserve) { (engine, request) throws(Failure) in
    try engine.complete(request)
  }
}
