import Base
import Store
import Supabase

/// Refuses a folder that holds another project's data.
///
/// With another URL, the tokens and all queued items would go to another server. The file that takes a
/// damaged one's place inherits the project. The cache needs no such check: its rows open only with a
/// key that is sealed in the main file's session.
enum ProjectChange {
  static func refuse(_ configuration: Configuration, _ database: Database) throws(Failure) {
    guard let other = other(configuration, database) else { return }
    Log.line(.warning, "the folder belongs to another project")
    throw Failure(
      .requestInvalidValue,
      "this folder belongs to the project " + other + ": use its URL, or another data_dir",
      field: "/backend/url", detail: ["project": .string(other)])
  }

  /// The project of the file, if it is another one than the configuration's. The first open notes it.
  static func other(_ configuration: Configuration, _ database: Database) -> String? {
    let project = configuration.backend.project
    let meta = MetaTable(database)
    do throws(Failure) {
      var known = try meta.project()
      if known == nil {
        try database.transaction { () throws(Failure) in
          known = try meta.project()
          if known == nil { try meta.setProject(project) }
        }
      }
      return known == project ? nil : known
    } catch {
      // A file that cannot be written now can be read: a later open notes the project. Damage is found by
      // those who need what is there.
      return nil
    }
  }
}
