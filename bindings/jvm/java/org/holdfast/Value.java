package org.holdfast;

/** Equal to another one of its class with the same content. */
abstract class Value {
  abstract Object content();

  @Override
  public final boolean equals(Object other) {
    return other != null && other.getClass() == getClass() && ((Value) other).content().equals(content());
  }

  @Override public final int hashCode() { return content().hashCode(); }
}
