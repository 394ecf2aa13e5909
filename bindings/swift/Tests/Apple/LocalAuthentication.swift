// As Security.swift: declarations of Apple's module LocalAuthentication.

import Foundation
import Security

public enum LAPolicy: Int { case deviceOwnerAuthenticationWithBiometrics = 1 }
public enum LAAccessControlOperation: Int { case useItem = 2 }

public struct LAError: Error {
  public enum Code: Int, Sendable { case authenticationFailed = -1 }
  public var code: Code
}

open class LAContext: NSObject {
  open var interactionNotAllowed = false
  open var localizedFallbackTitle: String?
  open func invalidate() {}
  open func canEvaluatePolicy(
    _ policy: LAPolicy, error: UnsafeMutablePointer<NSError?>?
  ) -> Bool { false }
  open func evaluateAccessControl(
    _ accessControl: SecAccessControl, operation: LAAccessControlOperation,
    localizedReason: String, reply: @escaping @Sendable (Bool, (any Error)?) -> Void
  ) {}
}
