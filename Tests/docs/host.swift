import CHoldfast
import Foundation

// The rest of a host around the Swift loop of docs/hosts.md; the counterpart of host.c.
let words = CommandLine.arguments
let config =
  """
  {"data_dir":"\(words[1])","backend":{"url":"\(words[2])","api_key":"\(words[3])"},
   "auth_methods":[{"id":"password","flow":"password"}],
   "keystore":{"kind":"file"},"policy":{"biometric":"off"}}
  """
var handle: OpaquePointer?
guard holdfast_open(config, nil, &handle, nil) == HOLDFAST_OK else { exit(1) }
let app = App(handle: handle)
app.call(holdfast_session_resume)
app.call(holdfast_sign_in_complete, ["email": "solo@example.org", "password": "holdfast-demo"])
follow(app) { app, event in
  print(event["type"] ?? "")
  if event["type"] as? String == "sync_completed" {
    holdfast_close(app.handle)
  } else if (event["decision"] as? [String: Any])?["screen"] as? String == "home" {
    let visit: [String: Any] = ["type": "visit", "minutes": 45]
    let item: [String: Any] = [
      "kind": "activity", "payload": visit, "occurred_at_ms": 1_795_000_000_000,
    ]
    guard app.call(holdfast_queue_add, item) != nil else { exit(1) }
  }
}
