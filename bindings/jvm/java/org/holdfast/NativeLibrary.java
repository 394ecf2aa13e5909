package org.holdfast;

import java.io.*;
import java.util.Locale;

/**
 * Loads libholdfast_jni, once per process: from the file that the system property
 * {@code org.holdfast.library} names, or out of this jar, or by the system's rules, as on Android.
 */
final class NativeLibrary {
  private static final String[] FILES = {"libholdfast.so.1", "libholdfast_jni.so"};

  private NativeLibrary() {}

  static void load() {
    String named = System.getProperty("org.holdfast.library");
    if (named != null) {
      System.load(new File(named).getAbsolutePath());
      return;
    }
    String folder = "/org/holdfast/native/" + platform() + "/";
    if (NativeLibrary.class.getResource(folder + FILES[1]) == null) {
      System.loadLibrary("holdfast_jni");
      return;
    }
    try {
      loadUnpacked(folder);
    } catch (IOException failure) {
      UnsatisfiedLinkError error = new UnsatisfiedLinkError("cannot unpack libholdfast");
      error.initCause(failure);
      throw error;
    }
  }

  /** For instance linux-x86_64. */
  private static String platform() {
    String system = System.getProperty("os.name", "").toLowerCase(Locale.ROOT).replace(" ", "");
    String processor = System.getProperty("os.arch", "");
    return system + "-" + (processor.equals("amd64") ? "x86_64" : processor);
  }

  /** Puts the libraries side by side into a folder of this user's, and removes it again. */
  private static void loadUnpacked(String from) throws IOException {
    File folder = File.createTempFile("holdfast", "");
    if (!folder.delete() || !folder.mkdir()) throw new IOException("cannot create " + folder);
    try {
      for (String name : FILES) copy(from + name, new File(folder, name));
      System.load(new File(folder, FILES[1]).getPath());
    } finally {
      for (String name : FILES) remove(new File(folder, name));
      remove(folder);
    }
  }

  private static void copy(String resource, File to) throws IOException {
    try (InputStream in = NativeLibrary.class.getResourceAsStream(resource);
        OutputStream out = new FileOutputStream(to)) {
      if (in == null) throw new IOException(resource + " is missing in the jar");
      byte[] part = new byte[65536];
      for (int count; (count = in.read(part)) >= 0; ) out.write(part, 0, count);
    }
  }

  /** At once where a file that is in use may go, as on Linux; else at the end of the program. */
  private static void remove(File file) {
    if (!file.delete()) file.deleteOnExit();
  }
}
