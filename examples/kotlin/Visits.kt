// Signs in, chooses an organisation, queues a visit offline, starts again without a sign-in, sends the visit, corrects
// it, searches, and logs out. Arguments: URL KEY FOLDER E-MAIL; the password is in HOLDFAST_PASSWORD.
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
  // What is stored stays in the cache, and can be corrected.
  val activity = QueueKind("activities").own(OwnRows()).change(ChangeRule())
  val backend = Backend(url, key).queue(mapOf("activity" to activity))
  val config = Config(folder, backend).template(ConfigTemplate.VOLUNTEERS).development(true)
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
    // Others may have changed it since: the change stands on what its user saw.
    val seen = app.itemList(ItemListRequest("activity")).items.first { it.id == visit }
    app.queueEdit(QueueEditRequest(visit, mapOf("minutes" to 60)).base(seen.payload))
    app.news.first { it is NextSync && visit in it.sync.ids }
    println("corrected: ${app.queueGet(QueueGetRequest(visit)).state}")
    var found = app.contactSearch(ContactSearchRequest(""))
    while (found.asOfMs == null) { // the first pull is under way
      app.news.first()
      found = app.contactSearch(ContactSearchRequest(""))
    }
    println("contacts: ${found.total} ${found.contacts.first().name}")
    println("unsent after the logout: ${app.sessionLogout().unsent}")
  }
}
