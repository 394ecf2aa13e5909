package org.holdfast.android;

import android.content.Context;
import android.net.*;
import java.util.*;
import java.util.concurrent.Executor;
import org.holdfast.*;
import org.holdfast.Types.NetworkReportRequest;
import org.jetbrains.annotations.NotNull;

/** Tells the library whether there is a network, as long as it is not closed. */
public final class NetworkReport implements AutoCloseable {
  private final ConnectivityManager manager;
  private final ConnectivityManager.NetworkCallback callback;

  /**
   * Begins to report.
   *
   * @param executor makes the calls, which can write to the disk: not the main thread's
   */
  public NetworkReport(@NotNull Context context, @NotNull Holdfast app, @NotNull Executor executor) {
    manager = context.getSystemService(ConnectivityManager.class);
    callback = new ConnectivityManager.NetworkCallback() {
      /** The default network can change without being lost. */
      private final Set<Network> present = new HashSet<>();

      @Override
      public void onAvailable(Network network) {
        present.add(network);
        tell(app, executor, true);
      }

      @Override
      public void onLost(Network network) {
        present.remove(network);
        tell(app, executor, !present.isEmpty());
      }
    };
    boolean online = manager.getActiveNetwork() != null;
    tell(app, executor, online); // without a network no callback comes
    manager.registerDefaultNetworkCallback(callback);
  }

  private static void tell(Holdfast app, Executor executor, boolean online) {
    PresenceReport.tell(executor, () -> app.networkReport(new NetworkReportRequest(online)));
  }

  @Override public void close() { manager.unregisterNetworkCallback(callback); }
}
