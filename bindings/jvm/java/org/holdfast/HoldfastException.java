package org.holdfast;

import java.nio.charset.StandardCharsets;
import java.util.*;
import org.holdfast.Types.Error;
import org.holdfast.Types.ErrorCode;
import org.holdfast.Types.ErrorReply;
import org.jetbrains.annotations.*;

/** An operation failed; the subclass is the class of the failure. A refused call changes nothing. */
@SuppressWarnings("serial") // of the subclasses, which have no fields
public class HoldfastException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private static final byte[] NO_MEMORY =
      "{\"code\":\"memory.exhausted\",\"message\":\"out of memory\",\"retryable\":true,\"detail\":{}}"
          .getBytes(StandardCharsets.UTF_8);

  private final String code;
  private final String field;
  private final boolean retryable;
  private final transient Map<String, Object> detail;

  HoldfastException(Error error) {
    super(error.getCode() + (error.getField() == null ? "" : " at " + error.getField()) + ": " + error.getMessage());
    code = error.getCode().value();
    field = error.getField();
    retryable = error.getRetryable();
    detail = error.getDetail();
  }

  /** What is wrong, as {@code noun.reason}; stable. The message is for developers. */
  @NotNull public final ErrorCode getCode() { return ErrorCode.of(code); }

  /** The place in the request that is wrong, as a JSON Pointer; null: no single field. */
  @Nullable public final String getField() { return field; }

  /** Whether the same call may succeed later. */
  public final boolean isRetryable() { return retryable; }

  /** Facts that belong to the code. */
  @NotNull
  public final Map<String, Object> getDetail() {
    return detail == null ? Collections.emptyMap() : detail;
  }

  /** The request is malformed; the field says where. */
  public static final class Invalid extends HoldfastException { Invalid(Error error) { super(error); } }

  /** Not allowed now: locked, signed out, no organisation, or the item is in flight. */
  public static final class State extends HoldfastException { State(Error error) { super(error); } }

  /** The item, contact, organisation or sign-in does not exist. */
  public static final class NotFound extends HoldfastException { NotFound(Error error) { super(error); } }

  /** The id exists with other content, or a confirmation does not match. */
  public static final class Conflict extends HoldfastException { Conflict(Error error) { super(error); } }

  /** The key store gave no key. */
  public static final class KeyStoreFailed extends HoldfastException { KeyStoreFailed(Error error) { super(error); } }

  /** A file could not be read or written. */
  public static final class Storage extends HoldfastException { Storage(Error error) { super(error); } }

  /** The disk is full, or the queue has reached its limit. */
  public static final class Full extends HoldfastException { Full(Error error) { super(error); } }

  /** Another process is writing. */
  public static final class Busy extends HoldfastException { Busy(Error error) { super(error); } }

  /** The handle is closed. */
  public static final class Closed extends HoldfastException { Closed(Error error) { super(error); } }

  /** The handle belongs to the parent process. */
  public static final class Forked extends HoldfastException { Forked(Error error) { super(error); } }

  /** The library has no memory, handles or descriptors left. */
  public static final class NoMemory extends HoldfastException { NoMemory(Error error) { super(error); } }

  /** A defect of the library; please report the code. */
  public static final class Internal extends HoldfastException { Internal(Error error) { super(error); } }

  /** The exception for a status and an error reply; without a reply the library had no memory. */
  static HoldfastException of(int status, @Nullable Map<String, Object> reply) {
    Error error = reply == null ? Error.of(Json.read(NO_MEMORY, 0)) : ErrorReply.of(reply).getError();
    switch (status) {
      case 1: return new Invalid(error);
      case 2: return new State(error);
      case 3: return new NotFound(error);
      case 4: return new Conflict(error);
      case 5: return new KeyStoreFailed(error);
      case 6: return new Storage(error);
      case 7: return new Full(error);
      case 8: return new Busy(error);
      case 9: return new Closed(error);
      case 10: return new Forked(error);
      case 11: return new NoMemory(error);
      default: return new Internal(error);
    }
  }
}
