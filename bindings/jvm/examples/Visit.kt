import java.nio.file.Files
import java.nio.file.Path
import kotlin.system.exitProcess
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.holdfast.Types.*
import org.holdfast.jdk.JdkHttpSender
import org.holdfast.jdk.Pkcs12KeyStore
import org.holdfast.kotlin.AsyncHoldfast

/**
 * The same as Visit.java with coroutines. If nobody gets in, it says why and ends.
 *
 * Usage: VisitKt URL API-KEY FOLDER E-MAIL PASSWORD
 */
fun main(given: Array<String>): Unit = runBlocking {
  val (url, apiKey, name, email, password) = given
  val folder = Files.createDirectories(Path.of(name))
  val config =
    Config(folder.resolve("data").toString(), Backend(url, apiKey))
      .authMethods(listOf(AuthMethodConfig("password", Flow.PASSWORD)))
      .policy(Policy().biometric(PolicyBiometric.OFF))
  val secret = (System.getenv("VISIT_KEYS") ?: "of this machine").toCharArray()
  val keys = Pkcs12KeyStore(folder.resolve("keys"), secret)
  AsyncHoldfast.open(config, JdkHttpSender(), keys).use { app ->
    val settled = CompletableDeferred<Decision>()
    val stored = MutableStateFlow(emptySet<String>())
    var shown = 0L
    /** The one place that draws; it takes no decision that is older than the one it shows. */
    suspend fun show(decision: Decision) {
      if (decision.number <= shown) return
      shown = decision.number
      println("screen: ${decision.screen} (${decision.reason})")
      when (decision.screen) {
        Screen.SIGN_IN ->
          if (decision.reason.value() == "session_missing")
            show(app.signInComplete(SignInPassword(email, password)))
          else settled.complete(decision)
        Screen.SELECT_ORG -> show(app.orgSelect(OrgSelectRequest(decision.orgs.first().orgId)))
        Screen.WAIT -> Unit // an event follows
        else -> settled.complete(decision) // without biometrics there is no `unlock`
      }
    }
    val following = launch {
      app.events.collect { event ->
        when (event) {
          is DecisionEvent -> show(event.decision)
          is SyncCompletedEvent -> stored.value += event.ids
          else -> Unit
        }
      }
    }
    show(app.sessionResume())
    val decision = settled.await()
    if (decision.screen != Screen.HOME) {
      println("nobody is in: ${decision.message?.text ?: decision.reason}")
      exitProcess(1)
    }
    val visit =
      QueueAddRequest("activity", mapOf("type" to "visit", "minutes" to 45))
        .occurredAtMs(System.currentTimeMillis())
    val id = app.queueAdd(visit).id // on disk now
    println("registered: $id")
    stored.first { id in it } // an event of an earlier run, which was not acknowledged, comes again
    following.cancel()
  }
}
