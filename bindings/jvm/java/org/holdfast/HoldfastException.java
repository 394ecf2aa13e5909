package org.holdfast;

import java.util.Collections;
import java.util.Map;
import org.holdfast.Types.Error;
import org.holdfast.Types.ErrorCode;
import org.jetbrains.annotations.NotNull;
import org.jetbrains.annotations.Nullable;

/** An operation failed; the subclass is the class of the failure. A refused call changes nothing. */
public class HoldfastException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final String code;
  private final String field;
  private final boolean retryable;
  private final transient Map<String, Object> detail;

  HoldfastException(Failure failure) {
    super(failure.code + (failure.field == null ? "" : " at " + failure.field) + ": " + failure.message);
    code = failure.code;
    field = failure.field;
    retryable = failure.retryable;
    detail = failure.detail;
  }

  /** What is wrong, as {@code noun.reason}; stable. The message is for developers. */
  @NotNull
  public final ErrorCode getCode() {
    return ErrorCode.of(code);
  }

  /** The place in the request that is wrong, as a JSON Pointer; null: no single field. */
  @Nullable
  public final String getField() {
    return field;
  }

  /** Whether the same call may succeed later. */
  public final boolean isRetryable() {
    return retryable;
  }

  /** Facts that belong to the code. */
  @NotNull
  public final Map<String, Object> getDetail() {
    return detail == null ? Collections.emptyMap() : detail;
  }

  /** The request is malformed; the field says where. */
  public static final class Invalid extends HoldfastException {
    private static final long serialVersionUID = 1;

    Invalid(Failure failure) {
      super(failure);
    }
  }

  /** Not allowed now: locked, signed out, no organisation, or the item is in flight. */
  public static final class State extends HoldfastException {
    private static final long serialVersionUID = 1;

    State(Failure failure) {
      super(failure);
    }
  }

  /** The item, contact, organisation or sign-in does not exist. */
  public static final class NotFound extends HoldfastException {
    private static final long serialVersionUID = 1;

    NotFound(Failure failure) {
      super(failure);
    }
  }

  /** The id exists with other content, or a confirmation does not match. */
  public static final class Conflict extends HoldfastException {
    private static final long serialVersionUID = 1;

    Conflict(Failure failure) {
      super(failure);
    }
  }

  /** The key store gave no key. */
  public static final class KeyStoreFailed extends HoldfastException {
    private static final long serialVersionUID = 1;

    KeyStoreFailed(Failure failure) {
      super(failure);
    }
  }

  /** A file could not be read or written. */
  public static final class Storage extends HoldfastException {
    private static final long serialVersionUID = 1;

    Storage(Failure failure) {
      super(failure);
    }
  }

  /** The disk is full, or the queue has reached its limit. */
  public static final class Full extends HoldfastException {
    private static final long serialVersionUID = 1;

    Full(Failure failure) {
      super(failure);
    }
  }

  /** Another process is writing. */
  public static final class Busy extends HoldfastException {
    private static final long serialVersionUID = 1;

    Busy(Failure failure) {
      super(failure);
    }
  }

  /** The handle is closed. */
  public static final class Closed extends HoldfastException {
    private static final long serialVersionUID = 1;

    Closed(Failure failure) {
      super(failure);
    }
  }

  /** The handle belongs to the parent process. */
  public static final class Forked extends HoldfastException {
    private static final long serialVersionUID = 1;

    Forked(Failure failure) {
      super(failure);
    }
  }

  /** The library has no memory, handles or descriptors left. */
  public static final class NoMemory extends HoldfastException {
    private static final long serialVersionUID = 1;

    NoMemory(Failure failure) {
      super(failure);
    }
  }

  /** A defect of the library; please report the code. */
  public static final class Internal extends HoldfastException {
    private static final long serialVersionUID = 1;

    Internal(Failure failure) {
      super(failure);
    }
  }

  /** The exception for a status and an error reply; without a reply the library had no memory. */
  static HoldfastException of(int status, @Nullable Map<String, Object> reply) {
    Failure failure = Failure.of(status, reply);
    switch (status) {
      case 1:
        return new Invalid(failure);
      case 2:
        return new State(failure);
      case 3:
        return new NotFound(failure);
      case 4:
        return new Conflict(failure);
      case 5:
        return new KeyStoreFailed(failure);
      case 6:
        return new Storage(failure);
      case 7:
        return new Full(failure);
      case 8:
        return new Busy(failure);
      case 9:
        return new Closed(failure);
      case 10:
        return new Forked(failure);
      case 11:
        return new NoMemory(failure);
      default:
        return new Internal(failure);
    }
  }

  /** The fields of an error reply. */
  static final class Failure {
    final String code;
    final String message;
    final String field;
    final boolean retryable;
    final Map<String, Object> detail;

    private Failure(
        String code, String message, String field, boolean retryable, Map<String, Object> detail) {
      this.code = code;
      this.message = message;
      this.field = field;
      this.retryable = retryable;
      this.detail = detail;
    }

    @SuppressWarnings("unchecked") // the names of a JSON object are texts
    static Failure of(int status, Map<String, Object> reply) {
      Object error = reply == null ? null : reply.get("error");
      if (error instanceof Map) {
        Error read = Error.of((Map<String, Object>) error);
        return new Failure(
            read.getCode().value(),
            read.getMessage(),
            read.getField(),
            read.getRetryable(),
            read.getDetail());
      }
      return without(status);
    }

    /** For a call that has no reply. */
    private static Failure without(int status) {
      switch (status) {
        case 5:
          return new Failure("keystore.failed", "the key store did not answer", null, true, null);
        case 6:
          return new Failure("storage.failed", "a file could not be read", null, true, null);
        case 7:
          return new Failure("storage.full", "the disk is full", null, true, null);
        case 8:
          return new Failure("storage.busy", "another process is writing", null, true, null);
        case 9:
          return new Failure("handle.closed", "the handle is closed", null, false, null);
        case 10:
          return new Failure(
              "handle.forked", "the handle belongs to the parent process", null, false, null);
        case 11:
          return new Failure("memory.exhausted", "out of memory", null, true, null);
        default:
          return new Failure("internal.defect", "status " + status + " without a reply", null, false, null);
      }
    }
  }
}
