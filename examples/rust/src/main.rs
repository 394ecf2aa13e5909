//! A whole app in six steps: sign in, choose, queue offline, restart, search, log out.
//!
//! Usage: visits [E-MAIL], with HOLDFAST_URL, HOLDFAST_KEY and HOLDFAST_PASSWORD set.
mod holdfast;

use holdfast::{Error, Holdfast};
use serde_json::{json, Value};
use std::{env, process, time};

fn given(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// An open app, and the screen that its user sees.
struct Visits {
    app: Holdfast,
    shown: Value,
}

impl Visits {
    /// Opens the app, and waits for a screen that waits for the user.
    fn open() -> Result<Visits, Error> {
        let (app, mut opened) = Holdfast::open(json!({
            "data_dir": "app-data",
            "backend": {"url": given("HOLDFAST_URL"), "api_key": given("HOLDFAST_KEY")},
            "template": "volunteers",
            "development": true, // or keystore: secret_service, the desktop's keyring
        }))?;
        let shown = Value::Null;
        let mut visits = Visits { app, shown };
        visits.draw(opened["screen"].take());
        visits.settle()?;
        Ok(visits)
    }

    /// Whether the user sees this screen.
    fn sees(&self, screen: &str) -> bool {
        self.shown["screen"] == screen
    }

    fn draw(&mut self, screen: Value) {
        self.shown = screen;
        if let Some(name) = self.shown["screen"].as_str().filter(|name| *name != "wait") {
            let text = self.shown["message"]["text"].as_str().unwrap_or_default();
            println!("screen: {name} {text}");
        }
    }

    /// Shows one thing that comes. An app with a window does this on a thread of its own.
    fn next(&mut self) -> Result<Value, Error> {
        let mut next = self.app.next()?;
        if let Some(screen) = next.get_mut("screen") {
            self.draw(screen.take());
        }
        if let Some(text) = next["notice"]["text"].as_str() {
            println!("notice: {text}"); // such as: the server has refused the visit
        }
        Ok(next)
    }

    fn settle(&mut self) -> Result<(), Error> {
        while self.shown.is_null() || self.sees("wait") {
            self.next()?;
        }
        Ok(())
    }

    /// Makes a call that leads to a screen, and waits for it.
    fn act(&mut self, operation: &str, request: Value) -> Result<(), Error> {
        self.app.call(operation, request)?;
        self.shown = Value::Null;
        self.settle()
    }

    /// Signs in, chooses an organisation, and queues a visit without a network: its id.
    fn begin(&mut self, email: &str) -> Result<Value, Error> {
        if self.sees("sign_in") {
            let user = json!({"email": email, "password": given("HOLDFAST_PASSWORD")});
            self.act("sign_in_complete", user)?;
        }
        if self.sees("select_org") {
            let orgs = self.shown["orgs"].as_array().cloned().unwrap_or_default();
            if let Some(org) = orgs.iter().find(|org| org["status"] == "active") {
                self.act("org_select", json!({"org_id": org["org_id"]}))?;
            }
        }
        if !self.sees("home") {
            let screen = self.shown["screen"].as_str().unwrap_or_default();
            return Err(Error(json!(format!("the user is not in: {screen}"))));
        }
        self.app.call("network_report", json!({"online": false}))?;
        let now = time::SystemTime::now().duration_since(time::UNIX_EPOCH);
        let visit = json!({
            "kind": "activity",
            "payload": {"type": "visit", "minutes": 45},
            "occurred_at_ms": now.unwrap_or_default().as_millis() as u64,
        });
        Ok(self.app.call("queue_add", visit)?["id"].take()) // on disk: a crash does not lose it
    }

    /// Waits until the visit is sent, searches, and logs out.
    fn finish(&mut self, id: Value) -> Result<(), Error> {
        loop {
            if self.next()?["sync"]["contacts_ms"].is_null() {
                continue;
            }
            let item = self.app.call("queue_get", json!({"id": id}))?;
            if let Some(state @ ("stored" | "parked")) = item["state"].as_str() {
                println!("the visit: {state}");
                break;
            }
        }
        let query = json!({"query": "", "limit": 3});
        let found = self.app.call("contact_search", query)?;
        let contacts = found["contacts"].as_array().into_iter().flatten();
        let names: Vec<_> = contacts.filter_map(|each| each["name"].as_str()).collect();
        println!("contacts: {} {}", found["total"], names.join(", "));
        self.act("session_logout", json!({})) // refused while something is unsent
    }
}

fn run() -> Result<(), Error> {
    let email = env::args().nth(1);
    let email = email.as_deref().unwrap_or("mentor@example.org");
    let id = Visits::open()?.begin(email)?; // closes the app
    println!("queued: {}", id.as_str().unwrap_or_default());
    Visits::open()?.finish(id) // again, without a sign-in
}

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}"); // a main that returns the error would show it with Debug
        process::exit(1);
    }
}
