/* The app's own words in three languages. Everything that the library says comes in the app's
 * language already. A .ui file has the English text, marked translatable="yes". */
#include "app.h"

#include <string.h>

static const struct {
  const char *en, *nb, *nn;
} words[] = {
#include "words.inc"
};

static int language; /* 0 en, 1 nb, 2 nn */

void words_use(const char *locale) {
  language = strcmp(locale, "nb") == 0 ? 1 : strcmp(locale, "nn") == 0 ? 2 : 0;
}

/* The English names of roles and columns. */
static const char *plain(const char *name) {
  const char *const names[][2] = {
      {"peer_mentor", "Peer mentor"}, {"coordinator", "Coordinator"},
      {"org_admin", "Administrator"}, {"municipality", "Municipality"},
      {"relation", "Relation"},       {"phone", "Phone"},
      {"address", "Address"},         {"national_id", "National identity number"},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
    if (strcmp(names[i][0], name) == 0)
      return names[i][1];
  return name;
}

const char *word(const char *english) {
  for (size_t i = 0; language != 0 && i < G_N_ELEMENTS(words); i++)
    if (strcmp(words[i].en, english) == 0)
      return language == 1 ? words[i].nb : words[i].nn;
  return language == 0 ? plain(english) : english;
}

/* Replaces one marked text of a .ui file. */
static gboolean translate(const GMatchInfo *match, GString *result, gpointer context) {
  (void)context;
  char *english = g_match_info_fetch(match, 1);
  char *escaped = g_markup_escape_text(word(english), -1);
  g_string_append_printf(result, "translatable=\"yes\">%s<", escaped);
  g_free(escaped);
  g_free(english);
  return FALSE;
}

screen screen_build(const char *name) {
  char *path = g_strdup_printf("/org/holdfast/Desktop/%s.ui", name);
  GBytes *bytes = g_resources_lookup_data(path, G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
  GRegex *marked = g_regex_new("translatable=\"yes\">([^<]*)<", 0, 0, NULL);
  gsize length = 0;
  const char *text = g_bytes_get_data(bytes, &length);
  char *translated =
      g_regex_replace_eval(marked, text, (gssize)length, 0, 0, translate, NULL, NULL);
  screen built = {.ui = gtk_builder_new_from_string(translated, -1)};
  built.widget = GTK_WIDGET(gtk_builder_get_object(built.ui, name));
  g_free(translated);
  g_regex_unref(marked);
  g_bytes_unref(bytes);
  g_free(path);
  return built;
}

gpointer part(const screen *screen, const char *id) {
  GObject *found = gtk_builder_get_object(screen->ui, id);
  if (found == NULL)
    g_error("the .ui file has no %s", id);
  return found;
}
