package org.holdfast.android;

import android.system.*;
import java.io.*;

/**
 * One sealed key in one file: the alias of the key that seals it, the initialisation vector and the
 * sealed bytes together, so that none can be replaced without the others.
 */
final class SealedFile {
  private static final int VERSION = 1;
  private static final int LONGEST = 4096;

  final String alias;
  final byte[] vector;
  final byte[] sealed;

  SealedFile(String alias, byte[] vector, byte[] sealed) {
    this.alias = alias;
    this.vector = vector;
    this.sealed = sealed;
  }

  /** Null: there is no such file. */
  static SealedFile read(File file) throws IOException {
    try (DataInputStream in = new DataInputStream(new FileInputStream(file))) {
      if (in.readByte() != VERSION) throw new IOException("a sealed key of another version");
      SealedFile read = new SealedFile(in.readUTF(), bytes(in), bytes(in));
      if (in.read() >= 0) throw new IOException("a sealed key with more behind it");
      return read;
    } catch (FileNotFoundException absent) {
      // The exception also stands for a file that cannot be opened.
      File folder = file.getParentFile();
      if (file.exists() || folder.exists() && !folder.canRead()) throw absent;
      return null;
    }
  }

  private static byte[] bytes(DataInputStream in) throws IOException {
    int length = in.readInt();
    if (length < 0 || length > LONGEST) throw new IOException("a sealed key of a wrong length");
    byte[] bytes = new byte[length];
    in.readFully(bytes);
    return bytes;
  }

  /** Replaces the file, durably: it is the old one or the new one after a power cut. */
  void write(File file) throws IOException {
    File fresh = new File(file.getPath() + ".new");
    try (FileOutputStream to = new FileOutputStream(fresh);
        DataOutputStream out = new DataOutputStream(to)) {
      out.writeByte(VERSION);
      out.writeUTF(alias);
      out.writeInt(vector.length);
      out.write(vector);
      out.writeInt(sealed.length);
      out.write(sealed);
      out.flush();
      to.getFD().sync();
    }
    if (!fresh.renameTo(file)) throw new IOException("cannot rename " + fresh.getName());
    sync(file.getParentFile());
  }

  static void delete(File file) throws IOException {
    if (!file.delete() && file.exists()) throw new IOException("cannot delete " + file.getName());
    sync(file.getParentFile());
  }

  /** Java has no way to make a rename durable. */
  private static void sync(File folder) throws IOException {
    try {
      FileDescriptor opened = Os.open(folder.getPath(), OsConstants.O_RDONLY, 0);
      try {
        Os.fsync(opened);
      } finally {
        Os.close(opened);
      }
    } catch (ErrnoException failure) {
      throw new IOException("cannot sync " + folder.getName(), failure);
    }
  }
}
