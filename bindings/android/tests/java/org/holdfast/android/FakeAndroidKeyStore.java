package org.holdfast.android;

import android.security.keystore.*;
import java.io.*;
import java.security.*;
import java.security.cert.Certificate;
import java.security.spec.AlgorithmParameterSpec;
import java.util.*;
import javax.crypto.*;

/**
 * A provider "AndroidKeyStore" as a device has it: keys that do not come out, and that an enrolment
 * invalidates, which a device reports when a key is fetched, when a cipher is made, or when that is
 * used. The public key goes on encrypting.
 */
public final class FakeAndroidKeyStore extends Provider {
  /** When a device says that a key is invalidated. */
  enum Report { FETCH, INIT, USE }

  /** A key in the hardware. */
  static final class Held implements SecretKey, PrivateKey {
    final Key inside;
    final KeyGenParameterSpec spec;
    boolean invalidated;
    boolean released;

    Held(Key inside, KeyGenParameterSpec spec) {
      this.inside = inside;
      this.spec = spec;
    }

    boolean needsUser() { return Boolean.TRUE.equals(spec.asked.get("authentication")); }
    @Override public String getAlgorithm() { return inside.getAlgorithm(); }
    @Override public String getFormat() { return null; }
    @Override public byte[] getEncoded() { return null; }
  }

  static final Map<String, Held> KEYS = new LinkedHashMap<>();
  static Report report = Report.INIT;
  static RuntimeException failure;

  FakeAndroidKeyStore() {
    super("AndroidKeyStore", "1", "as on a device");
    put("KeyStore.AndroidKeyStore", Store.class.getName());
    put("KeyGenerator.AES", Secrets.class.getName());
    put("KeyPairGenerator.RSA", Pairs.class.getName());
    put("Cipher.AES/GCM/NoPadding", Aes.class.getName());
    put("Cipher.RSA/ECB/OAEPWithSHA-256AndMGF1Padding", Rsa.class.getName());
    String held = Held.class.getName();
    put("Cipher.AES/GCM/NoPadding SupportedKeyClasses", held);
    put("Cipher.RSA/ECB/OAEPWithSHA-256AndMGF1Padding SupportedKeyClasses", held);
  }

  static void enrol() {
    for (Held one : KEYS.values())
      one.invalidated |=
          one.needsUser()
              && Boolean.TRUE.equals(one.spec.asked.get("invalidated"))
              && java.util.Arrays.asList(0, 2).equals(one.spec.asked.get("parameters"));
  }

  /** What a prompt does on success: the key may be used once. */
  static void release() { for (Held one : KEYS.values()) one.released = true; }
  private static UnsupportedOperationException none() { return new UnsupportedOperationException(); }
  private static void work() { if (failure != null) throw failure; }

  /** The key store's aliases. */
  public static final class Store extends KeyStoreSpi {
    @Override
    public Key engineGetKey(String alias, char[] password) throws UnrecoverableKeyException {
      work();
      Held key = KEYS.get(alias);
      if (key != null && key.invalidated && report == Report.FETCH) {
        UnrecoverableKeyException wrapped = new UnrecoverableKeyException("Failed to obtain key");
        wrapped.initCause(new android.security.KeyStoreException("Key permanently invalidated"));
        throw wrapped;
      }
      return key;
    }

    @Override
    public void engineDeleteEntry(String alias) {
      work();
      KEYS.remove(alias);
    }

    @Override
    public Enumeration<String> engineAliases() {
      work();
      return Collections.enumeration(new java.util.ArrayList<>(KEYS.keySet()));
    }

    @Override public boolean engineContainsAlias(String alias) { return KEYS.containsKey(alias); }
    @Override public int engineSize() { return KEYS.size(); }
    @Override public void engineLoad(InputStream in, char[] password) {}
    @Override public void engineStore(OutputStream out, char[] password) { throw none(); }
    @Override public Certificate[] engineGetCertificateChain(String alias) { return null; }
    @Override public Certificate engineGetCertificate(String alias) { return null; }
    @Override public Date engineGetCreationDate(String alias) { return null; }
    @Override public void engineSetKeyEntry(String alias, Key key, char[] password, Certificate[] all) { throw none(); }
    @Override public void engineSetKeyEntry(String alias, byte[] key, Certificate[] chain) { throw none(); }
    @Override public void engineSetCertificateEntry(String alias, Certificate certificate) { throw none(); }
    @Override public boolean engineIsKeyEntry(String alias) { return true; }
    @Override public boolean engineIsCertificateEntry(String alias) { return false; }
    @Override public String engineGetCertificateAlias(Certificate certificate) { return null; }
  }

  /** AES keys. */
  public static final class Secrets extends KeyGeneratorSpi {
    private KeyGenParameterSpec spec;

    @Override
    protected void engineInit(AlgorithmParameterSpec given, SecureRandom random) { spec = (KeyGenParameterSpec) given; }
    @Override protected void engineInit(SecureRandom random) { throw none(); }
    @Override protected void engineInit(int size, SecureRandom random) { throw none(); }

    @Override
    protected SecretKey engineGenerateKey() {
      work();
      try {
        KeyGenerator real = KeyGenerator.getInstance("AES", "SunJCE");
        real.init((Integer) spec.asked.get("size"));
        Held key = new Held(real.generateKey(), spec);
        KEYS.put(spec.alias, key);
        return key;
      } catch (GeneralSecurityException impossible) { throw new AssertionError(impossible); }
    }
  }

  /** RSA pairs. */
  public static final class Pairs extends KeyPairGeneratorSpi {
    private KeyGenParameterSpec spec;

    @Override
    public void initialize(AlgorithmParameterSpec given, SecureRandom random) { spec = (KeyGenParameterSpec) given; }
    @Override public void initialize(int size, SecureRandom random) { throw none(); }

    @Override
    public KeyPair generateKeyPair() {
      work();
      try {
        KeyPairGenerator real = KeyPairGenerator.getInstance("RSA", "SunRsaSign");
        real.initialize((Integer) spec.asked.get("size"));
        KeyPair pair = real.generateKeyPair();
        Held key = new Held(pair.getPrivate(), spec);
        KEYS.put(spec.alias, key);
        return new KeyPair(pair.getPublic(), key);
      } catch (GeneralSecurityException impossible) { throw new AssertionError(impossible); }
    }
  }

  /** Ciphers with keys that are held here. */
  private abstract static class HeldCipher extends CipherSpi {
    private final Cipher real;
    private Held key;

    HeldCipher(String transformation) {
      try {
        real = Cipher.getInstance(transformation, "SunJCE");
      } catch (GeneralSecurityException impossible) { throw new AssertionError(impossible); }
    }

    private Key checked(Key given) throws InvalidKeyException {
      work();
      if (!(given instanceof Held)) throw new InvalidKeyException("a key of another provider");
      key = (Held) given;
      key.released = false;
      if (key.invalidated && report == Report.INIT) throw new KeyPermanentlyInvalidatedException();
      return key.inside;
    }

    @Override
    protected void engineInit(int mode, Key given, SecureRandom random) throws InvalidKeyException {
      real.init(mode, checked(given));
    }

    @Override
    protected void engineInit(
        int mode, Key given, AlgorithmParameterSpec parameters, SecureRandom random)
        throws InvalidKeyException, InvalidAlgorithmParameterException {
      if (mode == Cipher.ENCRYPT_MODE)
        throw new InvalidAlgorithmParameterException("the key store makes the vector");
      real.init(mode, checked(given), parameters);
    }

    @Override
    protected void engineInit(int mode, Key given, AlgorithmParameters all, SecureRandom random) { throw none(); }

    @Override
    protected byte[] engineDoFinal(byte[] bytes, int offset, int length)
        throws IllegalBlockSizeException, BadPaddingException {
      work();
      IllegalBlockSizeException refused = new IllegalBlockSizeException();
      if (key.invalidated && report == Report.USE) {
        refused.initCause(new android.security.KeyStoreException("Key permanently invalidated"));
        throw refused;
      }
      if (key.needsUser() && !key.released) {
        refused.initCause(new android.security.KeyStoreException("Key user not authenticated"));
        throw refused;
      }
      key.released = false;
      return real.doFinal(bytes, offset, length);
    }

    @Override protected int engineDoFinal(byte[] in, int from, int length, byte[] out, int to) { throw none(); }

    @Override
    protected byte[] engineUpdate(byte[] bytes, int offset, int length) { return real.update(bytes, offset, length); }
    @Override protected int engineUpdate(byte[] in, int from, int length, byte[] out, int to) { throw none(); }
    @Override protected void engineSetMode(String mode) throws NoSuchAlgorithmException {}
    @Override protected void engineSetPadding(String padding) throws NoSuchPaddingException {}
    @Override protected int engineGetBlockSize() { return real.getBlockSize(); }
    @Override protected int engineGetOutputSize(int length) { return real.getOutputSize(length); }
    @Override protected byte[] engineGetIV() { return real.getIV(); }
    @Override protected AlgorithmParameters engineGetParameters() { return real.getParameters(); }
  }

  /** AES-GCM. */
  public static final class Aes extends HeldCipher { public Aes() { super("AES/GCM/NoPadding"); } }

  /** RSA-OAEP. */
  public static final class Rsa extends HeldCipher { public Rsa() { super("RSA/ECB/OAEPWithSHA-256AndMGF1Padding"); } }
}
