#include <errno.h>
#include <sqlite3.h>

/* Prepare a connection for a file that somebody else may have written: its triggers and views do
 * not run, its schema calls no function with side effects, and no statement can write the schema
 * itself. A function of C, because sqlite3_db_config() takes variable arguments. */
static inline int csqlite_distrust(sqlite3 *database) {
  int result = sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0);
  if (result == SQLITE_OK)
    result = sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)0);
  if (result == SQLITE_OK)
    result = sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, (int *)0);
  if (result == SQLITE_OK)
    result = sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)0);
  return result;
}

/* Swift cannot call a function with variadic arguments. On: closing the last connection neither
 * copies the log into the file nor deletes it. */
static inline void sqlite3_keep_log(sqlite3 *connection, int on) {
  sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, on, (int *)0);
}

/* Change the size of the log's file; added bytes are zero, so they are no frame. Call it in a write
 * transaction and leave the committed frames. */
static inline int sqlite3_resize_log(sqlite3 *connection, sqlite3_int64 size) {
  char zeros[4096] = {0};
  sqlite3_file *log = 0;
  sqlite3_int64 now = 0;
  int result = sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (result != SQLITE_OK || log == 0 || log->pMethods == 0)
    return SQLITE_MISUSE;
  result = log->pMethods->xFileSize(log, &now);
  if (result == SQLITE_OK && now > size)
    return log->pMethods->xTruncate(log, size);
  while (result == SQLITE_OK && now < size) {
    int count = size - now < (int)sizeof zeros ? (int)(size - now) : (int)sizeof zeros;
    result = log->pMethods->xWrite(log, zeros, count, now);
    now += count;
  }
  return result;
}

/* The errno of a write or sync of the log that failed with `result`: sqlite3_system_errno() does
 * not have that of a commit. 0: it was something else. */
static inline int csqlite_log_errno(sqlite3 *connection, int result) {
  sqlite3_file *log = 0;
  int number = 0;
  if (result != SQLITE_IOERR_WRITE && result != SQLITE_IOERR_FSYNC &&
      result != SQLITE_IOERR_TRUNCATE)
    return 0;
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (log != 0 && log->pMethods != 0)
    log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &number);
  return number;
}

/* Whether `result` says that the file is damaged, because the disk has refused a read: SQLite takes
 * EIO, ENXIO and ERANGE for that. Another read may succeed. */
static inline int csqlite_read_was_refused(sqlite3 *connection, int result) {
  static const int files[] = {SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER};
  if ((result & 0xFF) != SQLITE_CORRUPT)
    return 0;
  for (int index = 0; index < 2; index++) {
    sqlite3_file *file = 0;
    int number = 0;
    sqlite3_file_control(connection, "main", files[index], &file);
    if (file != 0 && file->pMethods != 0)
      file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &number);
    if (number == EIO || number == ENXIO || number == ERANGE)
      return 1;
  }
  return 0;
}
