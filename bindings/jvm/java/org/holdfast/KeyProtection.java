package org.holdfast;

/** What protects a key; {@code BIOMETRIC} needs the user's presence, and is lost on re-enrolment. */
public enum KeyProtection { DEVICE, BIOMETRIC }
