// Finds the places in Swift sources where a fault can be put, from the syntax tree.
//
// Arguments: paths of files. Output: a line of JSON for each place:
// {"file", "scope", "kind", "form", "start", "end", "line", "before", "after"}; offsets are bytes.
// `form` says how the fault is written: see Tests/mutants/mutants/rewrite.py.
import SwiftOperators
import SwiftParser
import SwiftSyntax

#if canImport(Glibc)
  import Glibc
#endif

let swappedOperators = [
  "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "===": "!==", "!==": "===",
  "&&": "||", "||": "&&", "+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "&+": "&-", "&-": "&+",
  "&*": "&+", "<<": ">>", ">>": "<<", "&<<": "&>>", "&>>": "&<<", "&": "|", "|": "&", "^": "|",
]
let kindOfOperator = [
  "<": "compare", "<=": "compare", ">": "compare", ">=": "compare", "==": "equal", "!=": "equal",
  "===": "equal", "!==": "equal", "&&": "logic", "||": "logic",
]
let swappedNames = [
  "min": "max", "max": "min", "first": "last", "last": "first", "dropFirst": "dropLast",
  "dropLast": "dropFirst", "prefix": "suffix", "suffix": "prefix", "allSatisfy": "contains",
  "removeFirst": "removeLast", "removeLast": "removeFirst",
]
/// Calls without an effect that a test should see: the log, traps, and hints on memory.
let ignoredCalls: Set = [
  "Log.line", "precondition", "preconditionFailure", "assert", "assertionFailure", "fatalError",
  "withExtendedLifetime", "unsafeBitCast",
]
let ignoredMembers: Set = ["reserveCapacity", "shrink"]

func quoted(_ text: String) -> String {
  var result = "\""
  for scalar in text.unicodeScalars {
    switch scalar {
    case "\"": result += "\\\""
    case "\\": result += "\\\\"
    case "\n": result += "\\n"
    case "\t": result += "\\t"
    case "\r": result += "\\r"
    default: result.unicodeScalars.append(scalar)
    }
  }
  return result + "\""
}

final class Finder: SyntaxVisitor {
  private let file: String
  private let lines: SourceLocationConverter
  /// The names of the declarations around the place.
  private var scopes: [String] = []
  /// What the functions and closures around the place return; nil: unknown.
  private var results: [String?] = []
  /// Locals that get their value later, once: none of their assignments can be left out.
  private var unset: Set<String> = []

  init(_ file: String, _ tree: SourceFileSyntax) {
    self.file = file
    lines = SourceLocationConverter(fileName: file, tree: tree)
    super.init(viewMode: .sourceAccurate)
  }

  private func report(_ kind: String, _ form: String, _ node: some SyntaxProtocol, _ after: String)
  {
    let start = node.positionAfterSkippingLeadingTrivia
    let before = node.trimmedDescription
    guard before != after else { return }
    let line = lines.location(for: start).line
    print(
      "{\"file\":\(quoted(file)),\"scope\":\(quoted(scopes.joined(separator: "."))),"
        + "\"kind\":\(quoted(kind)),\"form\":\(quoted(form)),"
        + "\"start\":\(start.utf8Offset),\"end\":\(node.endPositionBeforeTrailingTrivia.utf8Offset),"
        + "\"line\":\(line),\"before\":\(quoted(before)),\"after\":\(quoted(after))}")
  }

  // MARK: Where a place is

  private func enter(_ name: String, returning result: String? = nil) -> SyntaxVisitorContinueKind {
    unset = []
    scopes.append(name)
    results.append(result)
    return .visitChildren
  }

  private func leave() {
    scopes.removeLast()
    results.removeLast()
  }

  override func visit(_ node: ClassDeclSyntax) -> SyntaxVisitorContinueKind {
    enter(node.name.text)
  }
  override func visitPost(_ node: ClassDeclSyntax) { leave() }
  override func visit(_ node: StructDeclSyntax) -> SyntaxVisitorContinueKind {
    enter(node.name.text)
  }
  override func visitPost(_ node: StructDeclSyntax) { leave() }
  override func visit(_ node: EnumDeclSyntax) -> SyntaxVisitorContinueKind { enter(node.name.text) }
  override func visitPost(_ node: EnumDeclSyntax) { leave() }
  override func visit(_ node: ProtocolDeclSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
  override func visit(_ node: ExtensionDeclSyntax) -> SyntaxVisitorContinueKind {
    enter(node.extendedType.trimmedDescription)
  }
  override func visitPost(_ node: ExtensionDeclSyntax) { leave() }
  override func visit(_ node: FunctionDeclSyntax) -> SyntaxVisitorContinueKind {
    enter(
      node.name.text,
      returning: node.signature.returnClause?.type.trimmedDescription ?? "Void")
  }
  override func visitPost(_ node: FunctionDeclSyntax) { leave() }
  override func visit(_ node: InitializerDeclSyntax) -> SyntaxVisitorContinueKind {
    enter("init", returning: "Void")
  }
  override func visitPost(_ node: InitializerDeclSyntax) { leave() }
  override func visit(_ node: DeinitializerDeclSyntax) -> SyntaxVisitorContinueKind {
    enter("deinit", returning: "Void")
  }
  override func visitPost(_ node: DeinitializerDeclSyntax) { leave() }
  override func visit(_ node: SubscriptDeclSyntax) -> SyntaxVisitorContinueKind {
    enter("subscript", returning: node.returnClause.type.trimmedDescription)
  }
  override func visitPost(_ node: SubscriptDeclSyntax) { leave() }
  override func visit(_ node: ClosureExprSyntax) -> SyntaxVisitorContinueKind {
    results.append(node.signature?.returnClause?.type.trimmedDescription)
    return .visitChildren
  }
  override func visitPost(_ node: ClosureExprSyntax) { results.removeLast() }
  override func visit(_ node: AccessorDeclSyntax) -> SyntaxVisitorContinueKind {
    results.append(node.accessorSpecifier.text == "get" ? results.last ?? nil : "Void")
    return .visitChildren
  }
  override func visitPost(_ node: AccessorDeclSyntax) { results.removeLast() }
  override func visit(_ node: PatternBindingSyntax) -> SyntaxVisitorContinueKind {
    let isMember = node.parent?.parent?.parent?.is(MemberBlockItemSyntax.self) ?? false
    guard isMember || node.accessorBlock != nil else {
      if node.initializer == nil { unset.insert(node.pattern.trimmedDescription) }
      results.append(results.last ?? nil)
      return .visitChildren
    }
    return enter(
      node.pattern.trimmedDescription, returning: node.typeAnnotation?.type.trimmedDescription)
  }
  override func visitPost(_ node: PatternBindingSyntax) {
    let isMember = node.parent?.parent?.parent?.is(MemberBlockItemSyntax.self) ?? false
    if isMember || node.accessorBlock != nil { leave() } else { results.removeLast() }
  }

  // MARK: What is left out

  override func visit(_ node: StringLiteralExprSyntax) -> SyntaxVisitorContinueKind {
    .skipChildren
  }
  override func visit(_ node: AttributeSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
  override func visit(_ node: EnumCaseDeclSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
  override func visit(_ node: IfConfigDeclSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
  override func visit(_ node: TypeExprSyntax) -> SyntaxVisitorContinueKind { .skipChildren }

  private func isIgnored(_ call: FunctionCallExprSyntax) -> Bool {
    if ignoredCalls.contains(call.calledExpression.trimmedDescription) { return true }
    guard let member = call.calledExpression.as(MemberAccessExprSyntax.self) else { return false }
    return ignoredMembers.contains(member.declName.baseName.text)
  }

  // MARK: Expressions

  override func visit(_ node: InfixOperatorExprSyntax) -> SyntaxVisitorContinueKind {
    let left = node.leftOperand.trimmedDescription
    let right = node.rightOperand.trimmedDescription
    guard let symbol = node.operator.as(BinaryOperatorExprSyntax.self)?.operator.text else {
      return .visitChildren
    }
    if symbol == "??" {
      report("coalesce", "choice", node, right)
      return .visitChildren
    }
    let texts = [node.leftOperand, node.rightOperand]
    if texts.contains(where: { $0.is(StringLiteralExprSyntax.self) || $0.is(ArrayExprSyntax.self) }
    ),
      kindOfOperator[symbol] == nil
    {
      return .visitChildren
    }
    if symbol == "..<" || symbol == "..." {
      // One less, and never below the start, which would be a trap.
      report("range", "choice", node, "\(left)\(symbol)Swift.max(\(left), \(right) - 1)")
    } else if let other = swappedOperators[symbol] {
      report(kindOfOperator[symbol] ?? "arithmetic", "choice", node, "\(left) \(other) \(right)")
    }
    return .visitChildren
  }

  override func visit(_ node: PrefixOperatorExprSyntax) -> SyntaxVisitorContinueKind {
    if node.operator.text == "!" {
      report("not", "choice", node, node.expression.trimmedDescription)
    }
    return .visitChildren
  }

  override func visit(_ node: TernaryExprSyntax) -> SyntaxVisitorContinueKind {
    report(
      "ternary", "choice", node,
      "\(node.condition.trimmedDescription) ? \(node.elseExpression.trimmedDescription)"
        + " : \(node.thenExpression.trimmedDescription)")
    return .visitChildren
  }

  override func visit(_ node: IntegerLiteralExprSyntax) -> SyntaxVisitorContinueKind {
    let text = node.literal.text
    let digits = text.filter { $0 != "_" }
    if let value = Int(digits) {
      report("constant", "choice", node, "\(value + 1)")
    } else if digits.hasPrefix("0x"), let value = UInt64(digits.dropFirst(2), radix: 16) {
      report("constant", "choice", node, "0x" + String(value ^ 1, radix: 16))
    }
    return .skipChildren
  }

  override func visit(_ node: BooleanLiteralExprSyntax) -> SyntaxVisitorContinueKind {
    report("constant", "choice", node, node.literal.text == "true" ? "false" : "true")
    return .skipChildren
  }

  override func visit(_ node: FunctionCallExprSyntax) -> SyntaxVisitorContinueKind {
    if isIgnored(node) { return .skipChildren }
    let arguments = Array(node.arguments)
    // Two neighbours whose values change places. The compiler tells which have the same type.
    let isSymmetric = ["min", "max"].contains(node.calledExpression.trimmedDescription)
    for (one, two) in zip(arguments, arguments.dropFirst()) where !isSymmetric {
      let values = [one, two].map { $0.expression }
      guard values.allSatisfy({ isPlain($0) }) else { continue }
      let texts = arguments.map { argument in
        let value = argument == one ? two : argument == two ? one : argument
        return (argument.label.map { "\($0.text): " } ?? "") + value.expression.trimmedDescription
      }
      report(
        "swap", "choice", node,
        node.calledExpression.trimmedDescription + "(" + texts.joined(separator: ", ") + ")"
          + (node.trailingClosure.map { " \($0.trimmedDescription)" } ?? ""))
      break
    }
    return .visitChildren
  }

  private func isPlain(_ value: ExprSyntax) -> Bool {
    value.is(DeclReferenceExprSyntax.self) || value.is(MemberAccessExprSyntax.self)
      || value.is(IntegerLiteralExprSyntax.self)
  }

  override func visit(_ node: DeclReferenceExprSyntax) -> SyntaxVisitorContinueKind {
    // The place is the name; the fault replaces the whole expression around it.
    guard let other = swappedNames[node.baseName.text], node.argumentNames == nil,
      let whole = expression(named: node)
    else { return .visitChildren }
    let start = whole.positionAfterSkippingLeadingTrivia.utf8Offset
    let name = node.positionAfterSkippingLeadingTrivia.utf8Offset - start
    let text = Array(whole.trimmedDescription.utf8)
    let after =
      Array(text[..<name]) + Array(other.utf8)
      + Array(text[(name + node.baseName.text.utf8.count)...])
    report("name", "choice", whole, String(decoding: after, as: UTF8.self))
    return .visitChildren
  }

  /// The call or the member access that the name belongs to, unless it is assigned to.
  private func expression(named node: DeclReferenceExprSyntax) -> ExprSyntax? {
    guard let parent = node.parent else { return nil }
    if let call = parent.as(FunctionCallExprSyntax.self), call.calledExpression.id == node.id {
      return ExprSyntax(call)
    }
    guard let member = parent.as(MemberAccessExprSyntax.self), member.declName.id == node.id,
      member.base != nil
    else { return nil }
    if let call = member.parent?.as(FunctionCallExprSyntax.self),
      call.calledExpression.id == member.id
    {
      if call.parent?.is(CodeBlockItemSyntax.self) ?? false { return nil }
      return ExprSyntax(call)
    }
    // `a.first?.b` is one chain: a part of it cannot be put in parentheses.
    if member.parent?.is(OptionalChainingExprSyntax.self) ?? true { return nil }
    return ExprSyntax(member)
  }

  // MARK: Conditions

  override func visit(_ node: IfExprSyntax) -> SyntaxVisitorContinueKind {
    // Only the log depends on such a condition.
    if node.elseBody == nil, node.body.statements.allSatisfy({ isLog($0) }) { return .skipChildren }
    for element in node.conditions { condition(element, ["never": "false", "always": "true"]) }
    return .visitChildren
  }

  override func visit(_ node: GuardStmtSyntax) -> SyntaxVisitorContinueKind {
    for element in node.conditions { condition(element, ["guard": "true"]) }
    return .visitChildren
  }

  override func visit(_ node: WhileStmtSyntax) -> SyntaxVisitorContinueKind {
    for element in node.conditions { condition(element, ["never": "false"]) }
    return .visitChildren
  }

  override func visit(_ node: WhereClauseSyntax) -> SyntaxVisitorContinueKind {
    report("always", "choice", node.condition, "true")
    return .visitChildren
  }

  private func isLog(_ item: CodeBlockItemSyntax) -> Bool {
    item.item.as(FunctionCallExprSyntax.self)?.calledExpression.trimmedDescription == "Log.line"
  }

  private func condition(_ element: ConditionElementSyntax, _ faults: [String: String]) {
    switch element.condition {
    case .expression(let value):
      for (kind, text) in faults.sorted(by: { $0.key < $1.key }) {
        report(kind, "choice", value, text)
      }
    case .optionalBinding(let binding):
      if let value = binding.initializer?.value { report("nil", "choice", value, "nil") }
    default: break
    }
  }

  // MARK: Statements

  override func visit(_ node: CodeBlockItemSyntax) -> SyntaxVisitorContinueKind {
    switch node.item {
    case .expr(let value): statement(node, value)
    case .stmt(let statement): jump(node, statement)
    default: break
    }
    return .visitChildren
  }

  private func statement(_ item: CodeBlockItemSyntax, _ value: ExprSyntax) {
    let isOnly = (item.parent?.as(CodeBlockItemListSyntax.self)?.count ?? 0) == 1
    let block = item.parent?.parent
    let isBody =
      block?.is(ClosureExprSyntax.self) ?? false || block?.is(AccessorBlockSyntax.self) ?? false
      || block?.parent?.is(FunctionDeclSyntax.self) ?? false
    let result = results.last ?? nil
    if isOnly, isBody, result != "Void" {
      // An implicit return.
      if result == "Bool", !value.is(BooleanLiteralExprSyntax.self) {
        report("result", "choice", value, "!(\(value.trimmedDescription))")
      }
      return
    }
    if let call = called(value) {
      if !isIgnored(call) { report("drop", "drop", item, "") }
    } else if let assignment = value.as(InfixOperatorExprSyntax.self) {
      let isAssignment = assignment.operator.is(AssignmentExprSyntax.self)
      let name = assignment.operator.trimmedDescription
      guard isAssignment || (name.hasSuffix("=") && swappedOperators[name] == nil) else { return }
      // An initialiser has to set every member.
      if isAssignment, scopes.last == "init" { return }
      if unset.contains(assignment.leftOperand.trimmedDescription) { return }
      report("assign", "drop", item, "")
      if name == "+=" || name == "-=" {
        report(
          "arithmetic", "either", item,
          "\(assignment.leftOperand.trimmedDescription) \(name == "+=" ? "-=" : "+=")"
            + " \(assignment.rightOperand.trimmedDescription)")
      }
    }
  }

  /// The call of a statement; nil when it is not one.
  private func called(_ value: ExprSyntax) -> FunctionCallExprSyntax? {
    if let attempt = value.as(TryExprSyntax.self) { return called(attempt.expression) }
    if let assignment = value.as(InfixOperatorExprSyntax.self),
      assignment.leftOperand.is(DiscardAssignmentExprSyntax.self)
    {
      return called(assignment.rightOperand)
    }
    return value.as(FunctionCallExprSyntax.self)
  }

  private func jump(_ item: CodeBlockItemSyntax, _ statement: StmtSyntax) {
    // Only where the block may be left at its end: the body of an `if`.
    let isInIf = item.parent?.parent?.parent?.is(IfExprSyntax.self) ?? false
    if let exit = statement.as(ReturnStmtSyntax.self) {
      if isInIf { report("exit", "drop", item, "") }
      guard let value = exit.expression, !value.is(NilLiteralExprSyntax.self) else { return }
      let result = results.last ?? nil
      if result == "Bool", !value.is(BooleanLiteralExprSyntax.self) {
        report("result", "choice", value, "!(\(value.trimmedDescription))")
      } else if let result, result.hasSuffix("?") {
        report("nil", "choice", value, "nil")
      }
    } else if isInIf {
      if statement.is(ThrowStmtSyntax.self) || statement.is(BreakStmtSyntax.self)
        || statement.is(ContinueStmtSyntax.self)
      {
        report("exit", "drop", item, "")
      }
    }
  }
}

for path in CommandLine.arguments.dropFirst() {
  guard let file = fopen(path, "r") else { fatalError("cannot read \(path)") }
  var bytes: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 1 << 16)
  while true {
    let count = fread(&buffer, 1, buffer.count, file)
    if count == 0 { break }
    bytes += buffer[..<count]
  }
  fclose(file)
  let parsed = Parser.parse(source: String(decoding: bytes, as: UTF8.self))
  // An operator that the table does not know stays in a flat list, where nothing is reported.
  let tree = OperatorTable.standardOperators.foldAll(parsed) { _ in }
  guard let source = tree.as(SourceFileSyntax.self) else { fatalError("\(path) is no source file") }
  Finder(path, source).walk(source)
}
