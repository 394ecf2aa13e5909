/// All facts that decide what becomes of the items of a request, when its response has come.
///
/// Every axis is a closed list, so that tests can go through the whole product. The engine collects the
/// facts (response, rows, memory); `UploadPolicy` decides.
public struct UploadSituation: Equatable, Sendable {
  /// What was sent.
  public enum Request: CaseIterable, Sendable {
    case upload
    /// A question: which of the items does the server have, with their values? Of items that were not
    /// sent before, a row can be another one's.
    case rows
    /// Which of the items does the server have?
    case ids
    /// A question about an id that nobody has. Its answer tells only that the way is open.
    case control
  }

  /// What the items do to their rows.
  public enum Operation: CaseIterable, Sendable {
    case insert
    case change
    case deletion
  }

  /// Why the server is asked for items.
  public enum Cause: CaseIterable, Sendable {
    /// The answer to their upload did not name them, or their user cancelled them.
    case unnamed
    /// A key is taken that the user gave, by another row or by this item's own.
    case given
    /// A key is taken that no user gave.
    case taken
    /// Something on the way answered their upload as it does in an outage.
    case gateway
    /// Something on the way refused their upload.
    case firewall
    /// New tokens were refused for their upload, perhaps by something on the way.
    case token
    /// As `gateway` or `firewall`, but so long ago that the answer tells nothing about the upload.
    case longAgo

    /// Whether the answer is to tell if the way to the service is open.
    public var isAboutTheWay: Bool { self != .unnamed && self != .given && self != .taken }
  }

  /// What the response says.
  public enum Answer: CaseIterable, Sendable {
    /// The items are stored. (Of others that it does not name, `unnamed` is judged.)
    case named
    /// The server answers as asked, and does not name the items.
    case unnamed
    /// A success without a body.
    case nothing
    /// A row is refused, for what its user gave (`BlamePolicy`).
    case refusedGiven
    /// A row is refused, for anything else.
    case refusedOther
    /// A key is taken, which a user gave: by this very item, or by another one.
    case takenGiven
    /// The same, of a key that no user gave.
    case takenOther
    /// The parent of the single item is not stored, and is queued.
    case parentQueued
    /// A policy of the server refuses the user.
    case denied
    /// The access token is refused.
    case token
    /// A new access token is refused, too.
    case tokenAgain
    /// The upload is too large.
    case tooLarge
    /// A gateway says so of a single small item.
    case tooLargeForGateway
    /// The statement took too long.
    case tooSlow
    /// The server lacks a column that the configuration lists no more.
    case missingColumn
    /// The service refuses the request: its schema, a defect.
    case schema
    /// A function has decided about other rows of the request, and not about these.
    case undecided
    /// The service says that it cannot answer for now.
    case service
    /// Something else answers, or nothing does, as in an outage.
    case gateway
    /// Something else refuses the request.
    case firewall
    /// The row is as the correction named it, and the service has not changed it.
    case unchanged
    /// Others have changed the row, and none of the columns of the correction.
    case free
    /// Others have changed what the correction changes.
    case changed
    /// Others have deleted the row, and it shows that.
    case deleted

    /// The service itself has refused the request, and not in passing.
    public var isRefusalByService: Bool {
      switch self {
      case .refusedGiven, .refusedOther, .takenGiven, .takenOther, .parentQueued, .denied,
        .tooLarge, .tooSlow,
        .missingColumn, .schema:
        true
      default: false
      }
    }

    /// Whose failure it may be, if no item is to blame.
    public enum Failing: Sendable {
      /// All items of this kind and these columns.
      case kind
      /// All uploads.
      case all
    }

    /// nil: it is no such failure.
    public var failing: Failing? {
      switch self {
      case .refusedOther, .takenOther, .denied, .tooSlow, .schema: .kind
      case .nothing, .tokenAgain, .tooLargeForGateway, .service, .gateway, .firewall: .all
      default: nil
      }
    }
  }

  /// The failed attempts before this one, the highest number among the items.
  public enum Attempts: CaseIterable, Sendable {
    /// 0 or 1.
    case few
    /// From 2 on: a failure that often passes may be an item's.
    case several
    /// From 8 on.
    case many

    public init(_ number: Int64) {
      self = number < 2 ? .few : number < Int64(ItemPause.manyAttempts) ? .several : .many
    }
  }

  /// How the items have failed before, where all have; `none` where they differ.
  public enum History: CaseIterable, Sendable {
    case none
    /// The server has refused them, or a batch with them, for what no user gave.
    case refused
    /// The item has failed alone, and waits for itself.
    case alone
    /// The same, and one more refusal on the way parks it.
    case last
  }

  /// The membership in the items' organisation.
  public enum Membership: CaseIterable, Sendable {
    /// None decides: the app has no organisations, or had none when the items were added.
    case notNeeded
    case unconfirmed
    /// The server has confirmed it in this process, after the last time that it denied anything.
    case confirmed
  }

  public var request = Request.upload
  public var operation = Operation.insert
  public var cause = Cause.unnamed
  public var answer: Answer
  /// The session is still the one that sent the request.
  public var isCurrent = true
  /// The upload had one item.
  public var isSingle = true
  public var attempts = Attempts.few
  public var history = History.none
  public var membership = Membership.confirmed
  /// The service itself asks for a pause.
  public var asksForPause = false
  /// Others get through: of the kind or of all, as `Answer.failing` says (`Passage`).
  public var othersWork = false
  /// So many items failed in a row that perhaps all do, although the way is open (`Passage`).
  public var manyFail = false
  /// Another item of its kind was stored since the item was refused, or failed last.
  public var othersSince = false
  /// Other items of its kind and columns are queued.
  public var othersQueued = true
  /// The control question may be asked again: see `ItemPause.mayAskControl`.
  public var mayAskControl = true

  /// The answer to an upload of one new item, while nothing else is sent.
  public init(_ answer: Answer) { self.answer = answer }

  /// A row is refused for what no user gave.
  public var isRefusal: Bool {
    answer == .refusedOther || answer == .takenOther || answer == .denied
  }
}
