// Signs in, chooses an organisation, queues a visit offline, starts again without a sign-in, sends the visit, searches,
// and logs out. Arguments: URL KEY FOLDER E-MAIL; the password is in HOLDFAST_PASSWORD.
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.runBlocking
import org.holdfast.Types.*
import org.holdfast.jdk.JdkHttpSender
import org.holdfast.kotlin.AsyncHoldfast

/** Does what each screen asks for, up to `home`. An app draws the screens. */
suspend fun enter(app: AsyncHoldfast, email: String) {
  while (true) {
    val shown = app.settled() ?: error("the app was closed")
    println("screen: ${shown.screen}")
    when (shown.screen) {
      Screen.HOME -> return
      Screen.SELECT_ORG -> app.orgSelect(OrgSelectRequest(shown.orgs.first().orgId))
      Screen.SIGN_IN -> {
        // A wrong password does not become right.
        check(shown.message?.code == ScreenCode.SESSION_MISSING) { shown.message?.text ?: "" }
        app.signInComplete(SignInPassword(email, System.getenv("HOLDFAST_PASSWORD")))
      }
      else -> error("this app has no screen ${shown.screen}")
    }
  }
}

fun main(given: Array<String>) = runBlocking {
  val (url, key, folder, email) = given
  val config = Config(folder, Backend(url, key)).template(ConfigTemplate.VOLUNTEERS).development(true)
  val visit = AsyncHoldfast.open(config, JdkHttpSender()).use { app ->
    enter(app, email)
    app.networkReport(NetworkReportRequest(false))
    // It is on disk when the call returns.
    app.queueAdd(QueueAddRequest("activity", mapOf("type" to "visit", "minutes" to 45))).id
  }
  AsyncHoldfast.open(config, JdkHttpSender()).use { app -> // the next start: the session is on disk, too
    enter(app, email)
    app.news.first {
      if (it is NextNotice) println(it.notice.text) // the server has refused it, for instance
      it is NextSync && visit in it.sync.ids
    }
    println("sent: $visit")
    var found = app.contactSearch(ContactSearchRequest(""))
    while (found.asOfMs == null) { // the first pull is under way
      app.news.first()
      found = app.contactSearch(ContactSearchRequest(""))
    }
    println("contacts: ${found.total} ${found.contacts.first().name}")
    println("unsent after the logout: ${app.sessionLogout().unsent}")
  }
}
