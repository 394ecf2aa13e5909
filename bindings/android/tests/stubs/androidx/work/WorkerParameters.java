// A declaration of what bindings/android uses, to compile it and to test it without a device.
package androidx.work;

public class WorkerParameters {}
