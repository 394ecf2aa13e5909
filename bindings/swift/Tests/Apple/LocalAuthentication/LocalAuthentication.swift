// Apple's module LocalAuthentication, as Security.swift beside it.

import Foundation
import Security

public let LAErrorDomain = "com.apple.LocalAuthentication"
public enum LAPolicy: Int { case deviceOwnerAuthenticationWithBiometrics = 1 }
public enum LAAccessControlOperation: Int { case useItem = 2 }

public final class LAContext: StandInContext, @unchecked Sendable {
  public var localizedFallbackTitle: String?
  public var interactionNotAllowed = false {
    didSet { keychain.with { state = interactionNotAllowed ? .forbidden : .fresh } }
  }

  public func invalidate() { keychain.with { state = .invalid } }

  public func canEvaluatePolicy(_: LAPolicy, error: UnsafeMutablePointer<NSError?>?) -> Bool {
    error?.pointee = LAContext.error(keychain.biometryProblem)
    return keychain.biometryProblem == nil
  }

  public func evaluateAccessControl(
    _ control: SecAccessControl, operation: LAAccessControlOperation, localizedReason: String,
    reply: @escaping @Sendable (Bool, (any Error)?) -> Void
  ) {
    Thread.detachNewThread { [self] in
      let error = LAContext.error(keychain.prompt(self, localizedReason))
      reply(error == nil, error)
    }
  }

  private static func error(_ code: Int?) -> NSError? {
    code.map { NSError(domain: LAErrorDomain, code: $0) }
  }
}
