// A declaration of what bindings/android uses, to compile it and to test it without a device.
package android.net;

public abstract class ConnectivityManager {
  public abstract Network getActiveNetwork();

  public abstract void registerDefaultNetworkCallback(NetworkCallback callback);

  public abstract void unregisterNetworkCallback(NetworkCallback callback);

  public static class NetworkCallback {
    public void onAvailable(Network network) {}

    public void onLost(Network network) {}
  }
}
