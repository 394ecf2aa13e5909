import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.holdfast.Holdfast;
import org.holdfast.Runner;
import org.holdfast.Types.*;
import org.holdfast.jdk.JdkHttpSender;
import org.holdfast.jdk.Pkcs12KeyStore;

/**
 * Signs in, registers a visit, and ends when the server has it. The second run needs no sign-in; a
 * run without a network keeps the visit for the next one. If nobody gets in, it says why and ends.
 *
 * <p>Usage: Visit URL API-KEY FOLDER E-MAIL PASSWORD
 */
final class Visit {
  private final Holdfast app;
  private final String email;
  private final String password;
  private final CountDownLatch ended = new CountDownLatch(1);
  private boolean isStored;
  private long shown;
  private String queued;

  private Visit(Holdfast app, String email, String password) {
    this.app = app;
    this.email = email;
    this.password = password;
  }

  public static void main(String[] given) throws Exception {
    Path folder = Files.createDirectories(Path.of(given[2]));
    Config config =
        new Config(folder.resolve("data").toString(), new Backend(given[0], given[1]))
            .authMethods(List.of(new AuthMethodConfig("password", Flow.PASSWORD)))
            .policy(new Policy().biometric(PolicyBiometric.OFF));
    char[] secret = System.getenv().getOrDefault("VISIT_KEYS", "of this machine").toCharArray();
    boolean isStored;
    try (Holdfast app = Holdfast.open(config, new Pkcs12KeyStore(folder.resolve("keys"), secret))) {
      Visit visit = new Visit(app, given[3], given[4]);
      Runner runner =
          new Runner(
              app,
              new JdkHttpSender(),
              event -> {
                if (event instanceof DecisionEvent) visit.show(((DecisionEvent) event).getDecision());
                if (event instanceof SyncCompletedEvent) visit.stored((SyncCompletedEvent) event);
              });
      try (runner) {
        runner.start();
        visit.show(app.sessionResume());
        visit.ended.await();
        isStored = visit.isStored();
      }
    }
    System.exit(isStored ? 0 : 1);
  }

  /** The one place that draws; it takes no decision that is older than the one it shows. */
  private synchronized void show(Decision decision) {
    if (decision.getNumber() <= shown) return;
    shown = decision.getNumber();
    System.out.println("screen: " + decision.getScreen() + " (" + decision.getReason() + ")");
    switch (decision.getScreen().known()) {
      case SIGN_IN:
        if (decision.getReason().value().equals("session_missing"))
          show(app.signInComplete(new SignInPassword(email, password)));
        else end("nobody is in: " + text(decision));
        break;
      case SELECT_ORG:
        show(app.orgSelect(new OrgSelectRequest(decision.getOrgs().get(0).getOrgId())));
        break;
      case HOME:
        if (queued == null) register();
        break;
      case WAIT: // an event follows
        break;
      default: // a screen of a later version; without biometrics there is no `unlock`
        end("nobody is in: " + text(decision));
        break;
    }
  }

  /** An event of an earlier run, which was not acknowledged, comes again. */
  private synchronized void stored(SyncCompletedEvent event) {
    if (!event.getIds().contains(queued)) return;
    isStored = true;
    ended.countDown();
  }

  private synchronized boolean isStored() {
    return isStored;
  }

  private void end(String why) {
    System.out.println(why);
    ended.countDown();
  }

  private static String text(Decision decision) {
    return decision.getMessage() == null
        ? decision.getReason().value()
        : decision.getMessage().getText();
  }

  private void register() {
    QueueAddRequest visit =
        new QueueAddRequest("activity", Map.of("type", "visit", "minutes", 45))
            .occurredAtMs(System.currentTimeMillis());
    queued = app.queueAdd(visit).getId(); // on disk now
    System.out.println("registered: " + queued);
  }
}
