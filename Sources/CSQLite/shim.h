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
