/* What keyring.c uses of libsecret, which it loads at run time. */
#ifndef HOLDFAST_LIBSECRET_H
#define HOLDFAST_LIBSECRET_H

#include <stddef.h>
#include <stdint.h>

/* As in secret-schema.h, glist.h and gerror.h. Objects are never looked into. */
typedef struct {
  const char *name;
  int flags;
  struct {
    const char *name;
    int type;
  } attributes[32];
  int reserved;
  void *more[7];
} secret_schema;

typedef struct {
  void *data, *next, *before;
} g_list;

typedef struct {
  uint32_t domain;
  int code;
  char *message;
} g_error;

enum {
  OPEN_SESSION = 1 << 1,
  SEARCH_UNLOCK = 1 << 2,
  SEARCH_LOAD_SECRETS = 1 << 3,
  IS_LOCKED = 2, /* SECRET_ERROR_IS_LOCKED */
};

typedef struct {
  void *(*service_get)(int flags, void *cancel, g_error **error);
  void *(*attributes)(const secret_schema *schema, ...);
  g_list *(*search)(void *service, const secret_schema *schema, void *attributes, int flags,
                    void *cancel, g_error **error);
  int (*store)(void *service, const secret_schema *schema, void *attributes, const char *collection,
               const char *label, void *value, void *cancel, g_error **error);
  int (*clear)(void *service, const secret_schema *schema, void *attributes, void *cancel,
               g_error **error);
  void *(*collection)(void *service, const char *alias, int flags, void *cancel, g_error **error);
  int (*collection_locked)(void *collection);
  int (*item_locked)(void *item);
  void *(*item_secret)(void *item);
  char *(*item_label)(void *item);
  int (*item_set_label)(void *item, const char *label, void *cancel, g_error **error);
  void *(*value_new)(const char *bytes, long length, const char *type);
  const char *(*value_bytes)(void *value, size_t *length);
  void (*value_free)(void *value);
  uint32_t (*error_domain)(void);
  void (*object_free)(void *object);
  void (*table_free)(void *table);
  void (*list_free)(g_list *list, void (*release)(void *));
  void (*error_free)(g_error *error);
  void (*text_free)(void *text);
} secret_library;

#endif /* HOLDFAST_LIBSECRET_H */
