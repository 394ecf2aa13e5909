package org.holdfast.kotlin

import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.ThreadPoolExecutor
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicBoolean
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.channels.ClosedSendChannelException
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import org.holdfast.EventListener
import org.holdfast.Holdfast
import org.holdfast.HoldfastException
import org.holdfast.HttpSender
import org.holdfast.KeyStore
import org.holdfast.Runner
import org.holdfast.Types.Config
import org.holdfast.Types.Decision
import org.holdfast.Types.Event
import org.holdfast.Types.SessionUnlockRequest

/**
 * [Holdfast] for coroutines: every operation is a suspend function on a thread of the library's, so
 * it may be called from the main thread, and requests are sent from [open] to [close].
 */
class AsyncHoldfast private constructor(
  /** The same handle, for calls that block. */
  val holdfast: Holdfast,
  sender: HttpSender,
) : AsyncOperations(), AutoCloseable {
  /** An event, and whether its collector has handled it. */
  private class Handed(val event: Event) {
    val handled = CompletableDeferred<Unit>()
  }

  /** One thread, which ends when it has nothing to do. */
  private val calls =
    ThreadPoolExecutor(1, 1, 10, TimeUnit.SECONDS, LinkedBlockingQueue()) { work ->
        Thread(work, "holdfast-calls").apply { isDaemon = true }
      }
      .apply { allowCoreThreadTimeOut(true) }
      .asCoroutineDispatcher()
  private val handed = Channel<Handed>()
  private val closed = AtomicBoolean()
  @Volatile private var current: Handed? = null
  /** Sends the requests. For `awaitIdle` and `cancel`. */
  val runner: Runner =
    Runner(
      holdfast,
      sender,
      object : EventListener {
        override fun onEvent(event: Event) = runBlocking {
          val one = Handed(event)
          current = one
          try {
            handed.send(one)
          } catch (closed: ClosedSendChannelException) {
            throw CancellationException("the app is closed") // the event is not acknowledged
          }
          one.handled.await()
        }

        override fun onEnd(failure: HoldfastException?) {
          handed.close(failure)
        }
      },
    ).start()

  override suspend fun <Reply> on(call: Holdfast.() -> Reply): Reply =
    withContext(calls) { holdfast.call() }

  /** On another thread: a key store shows its prompt first, and no other call waits for that. */
  override suspend fun sessionUnlock(request: SessionUnlockRequest): Decision =
    withContext(Dispatchers.IO) { holdfast.sessionUnlock(request) }

  /**
   * The events, until the handle is closed; a poll that fails for good is thrown. An event is
   * acknowledged when its collector has returned, so one that was cancelled gets a durable event
   * again. Each event goes to one collector: for several, share the flow. Without a collector,
   * events stay in the library.
   */
  val events: Flow<Event> = flow {
    for (one in handed) {
      try {
        // A reply may have come since the runner compared.
        if (!holdfast.isSuperseded(one.event)) emit(one.event)
        one.handled.complete(Unit)
      } finally {
        one.handled.cancel()
      }
    }
  }

  /** Ends the events, waits for the requests in flight, and closes the handle. */
  override fun close() {
    if (!closed.compareAndSet(false, true)) return
    handed.close()
    // An event that is under way is not acknowledged; its collector may be what calls this.
    current?.handled?.cancel()
    while (true) handed.tryReceive().getOrNull()?.handled?.cancel() ?: break
    runner.close()
    holdfast.close()
  }

  companion object {
    /** Opens the folder. The configuration names the key store, for instance key files. */
    suspend fun open(config: Config, sender: HttpSender): AsyncHoldfast =
      withContext(Dispatchers.IO) { AsyncHoldfast(Holdfast.open(config), sender) }

    /** Opens the folder with the platform's key store. */
    suspend fun open(config: Config, sender: HttpSender, keys: KeyStore): AsyncHoldfast =
      withContext(Dispatchers.IO) { AsyncHoldfast(Holdfast.open(config, keys), sender) }
  }
}
