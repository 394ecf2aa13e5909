package org.holdfast.kotlin

import java.util.concurrent.atomic.AtomicBoolean
import kotlinx.coroutines.*
import kotlinx.coroutines.flow.*
import org.holdfast.*
import org.holdfast.Types.*

/**
 * [Holdfast] for coroutines: every operation is a suspend function on [Dispatchers.IO], so it may be
 * called from the main thread, and requests are sent from [open] to [close].
 */
class AsyncHoldfast private constructor(
  /** The same handle, for calls that block. */
  val holdfast: Holdfast
) : AsyncOperations(), AutoCloseable {
  private val reader = CoroutineScope(SupervisorJob() + Dispatchers.IO)
  private val reading = AtomicBoolean()

  /** The next thing, asked for; a collector that was cancelled leaves it to the next one. */
  private var asked: Deferred<NextReply?>? = null

  /** What [settled] has passed over. */
  private val kept = ArrayDeque<NextReply>()
  private val shown = MutableStateFlow(holdfast.screen)

  /** The newest screen, while [news] is collected; null: none yet, as in a worker. */
  val screen: StateFlow<Decision?> = shown.asStateFlow()

  /**
   * What the app must show, one thing at a time, beginning with the first screen, until the handle
   * is closed. Asking for the next thing, which a collector does by returning, acknowledges a notice.
   * One collector at a time: share the flow for several.
   */
  val news: Flow<NextReply> = flow {
    check(reading.compareAndSet(false, true)) { "the news has a collector: share the flow" }
    try {
      while (true) {
        val thing = next() ?: break
        if (thing is NextScreen) shown.value = thing.screen
        emit(thing)
      }
    } finally {
      reading.set(false)
    }
  }

  /**
   * The next screen but `wait`, for instance the result of a sign-in; null: the handle is closed. What
   * else comes is kept for [news]; a notice among it counts as acknowledged.
   */
  suspend fun settled(): Decision? {
    val others = mutableListOf<NextReply>()
    try {
      return news.onEach { if (it !is NextScreen) others += it }
        .firstOrNull { it is NextScreen && it.screen.screen != Screen.WAIT }?.let { screen.value }
    } finally {
      kept += others
    }
  }

  private suspend fun next(): NextReply? {
    kept.removeFirstOrNull()?.let { return it }
    while (true) {
      val mine = asked ?: reader.async { holdfast.next() }.also { asked = it }
      try {
        return mine.await().also { asked = null }
      } catch (failure: HoldfastException) {
        asked = null
        delay(250)
      }
    }
  }

  override suspend fun <Reply> on(call: Holdfast.() -> Reply): Reply =
    withContext(Dispatchers.IO) { holdfast.call() }

  /** Waits for the requests in flight, and closes; the news ends. May be called twice. */
  override fun close() = holdfast.close()

  companion object {
    /**
     * Opens the folder.
     *
     * @param keys the platform's key store; null: the one that the configuration names
     */
    suspend fun open(config: Config, sender: HttpSender, keys: KeyStore? = null): AsyncHoldfast =
      withContext(Dispatchers.IO) { AsyncHoldfast(Holdfast.open(config, sender, keys)) }
  }
}
