// The functions of CPlatform that take a path, and are called in most openings or calls, for a `String`.
//
// Swift converts a String argument to a C string through an array: in Embedded Swift that costs some
// forty instructions for each byte, and a path is passed twenty times at an opening. `withCString`
// passes the String's own bytes.

import CPlatform

public func platform_size(_ path: String) -> Int64 { path.withCString { platform_size($0) } }

public func platform_exists(_ path: String) -> Bool { path.withCString { platform_exists($0) } }

public func platform_file_id(_ path: String) -> UInt64 {
  path.withCString { platform_file_id($0) }
}

public func platform_folder(_ path: String) -> Int32 { path.withCString { platform_folder($0) } }

public func platform_size_and_id(_ path: String, _ file: UnsafeMutablePointer<UInt64>) -> Int64 {
  path.withCString { platform_size_and_id($0, file) }
}

public func platform_check_folder(
  _ folder: String, _ hasKeys: Bool,
  _ name: UnsafeMutablePointer<UnsafePointer<CChar>?>
) -> Int32 {
  folder.withCString { platform_check_folder($0, hasKeys, name) }
}

public func platform_folder_lock(_ path: String, _ exclusive: Bool) -> Int32 {
  path.withCString { platform_folder_lock($0, exclusive) }
}

public func platform_neighbours_open(_ path: String) -> Int32 {
  path.withCString { platform_neighbours_open($0) }
}

public func platform_read_secret(
  _ path: String, _ bytes: UnsafeMutableRawPointer?, _ capacity: Int,
  _ length: UnsafeMutablePointer<Int>
) -> Int32 {
  path.withCString { platform_read_secret($0, bytes, capacity, length) }
}

public func platform_real_path(
  _ path: String, _ real: UnsafeMutablePointer<CChar>?, _ capacity: Int
) -> Int32 {
  path.withCString { platform_real_path($0, real, capacity) }
}

public func platform_handle_new(_ object: UnsafeMutableRawPointer?, _ folder: String) -> UInt {
  folder.withCString { platform_handle_new(object, $0) }
}
