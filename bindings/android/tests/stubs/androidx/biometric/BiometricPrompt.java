// A declaration of what bindings/android uses, to compile it and to test it without a device.
package androidx.biometric;

public class BiometricPrompt {
  /** What a test lets the prompt do. */
  public static Script script;

  /** Learns that a prompt was dismissed. */
  public static java.util.function.IntConsumer dismissed;

  private final AuthenticationCallback callback;

  public BiometricPrompt(
      androidx.fragment.app.FragmentActivity activity,
      java.util.concurrent.Executor executor,
      AuthenticationCallback callback) {
    this.callback = callback;
  }

  public void authenticate(PromptInfo info, CryptoObject object) {
    script.run(info, object, callback);
  }

  /** As on a device: the callback learns of it. */
  public void cancelAuthentication() {
    dismissed.accept(5);
    callback.onAuthenticationError(5, "");
  }

  public interface Script {
    void run(PromptInfo info, CryptoObject object, AuthenticationCallback callback);
  }

  public static class CryptoObject {
    private final javax.crypto.Cipher cipher;

    public CryptoObject(javax.crypto.Cipher cipher) {
      this.cipher = cipher;
    }

    public javax.crypto.Cipher getCipher() {
      return cipher;
    }
  }

  public static class AuthenticationResult {
    private final CryptoObject object;

    public AuthenticationResult(CryptoObject object) {
      this.object = object;
    }

    public CryptoObject getCryptoObject() {
      return object;
    }
  }

  public abstract static class AuthenticationCallback {
    public void onAuthenticationError(int error, CharSequence words) {}

    public void onAuthenticationSucceeded(AuthenticationResult result) {}

    public void onAuthenticationFailed() {}
  }

  public static class PromptInfo {
    public final String title;
    public final int authenticators;

    private PromptInfo(String title, int authenticators) {
      this.title = title;
      this.authenticators = authenticators;
    }

    public static class Builder {
      private CharSequence title;
      private CharSequence negative;
      private int authenticators;

      public Builder setTitle(CharSequence title) {
        this.title = title;
        return this;
      }

      public Builder setNegativeButtonText(CharSequence words) {
        negative = words;
        return this;
      }

      public Builder setAllowedAuthenticators(int allowed) {
        authenticators = allowed;
        return this;
      }

      public PromptInfo build() {
        if (title == null || negative == null) throw new IllegalArgumentException("no title");
        return new PromptInfo(title.toString(), authenticators);
      }
    }
  }
}
