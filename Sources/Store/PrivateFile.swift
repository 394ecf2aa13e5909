public import Base
import CPlatform

/// Files that belong to this user alone: owned by it, writable by nobody else, no links, and under one
/// name. Others could change what the library believes, and the library could write elsewhere.
public enum PrivateFile {
  /// Refuse a data folder, or a file in it, that others own or can change. `hasKeys`: its key files, too.
  public static func check(folder: String, hasKeys: Bool) throws(Failure) {
    var name: UnsafePointer<CChar>?
    let problem = Int(platform_check_folder(folder, hasKeys, &name))
    guard problem != 0 else { return }
    guard name == nil, let reason = Reason(problem) else {
      throw Database.failure(
        ofSystem: problem, "the data folder could not be looked at",
        name.map { String(cString: $0) })
    }
    throw Failure(
      .requestInvalidValue, "the folder " + reason.advice.string, field: "/data_dir",
      detail: ["reason": JSON(reason.word)])
  }

  /// The same for a file of any name.
  public static func check(_ name: String, in folder: String) throws(Failure) {
    let problem = Int(platform_check_file(folder + "/" + name))
    guard problem != 0 else { return }
    throw Database.failure(ofSystem: problem, "a file could not be looked at", name)
  }

  /// Why a file is not private.
  struct Reason {
    /// The code in the error's detail.
    let word: StaticCString
    /// What it is and what to do, after the file's name.
    let advice: StaticCString

    /// nil: the number is an errno.
    init?(_ problem: Int) {
      switch problem {
      case PLATFORM_LINK:
        (word, advice) = ("link", "is a symbolic link: put what it leads to in its place")
      case PLATFORM_FOREIGN:
        (word, advice) = (
          "owner",
          "belongs to another user: run the app as that user, or give it to this one (chown)"
        )
      case PLATFORM_WRITABLE:
        (word, advice) = ("writable", "can be changed by other users: forbid that (chmod go-w)")
      case PLATFORM_NO_FILE:
        (word, advice) = ("no_file", "is a pipe or a device: remove it")
      case PLATFORM_SECOND_NAME:
        (word, advice) = (
          "second_name", "has a second name (a hard link): remove that, or put a copy in its place"
        )
      case PLATFORM_READABLE:
        (word, advice) = ("readable", "holds a key and can be read by others: set its mode to 0600")
      default: return nil
      }
    }
  }
}
