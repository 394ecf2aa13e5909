//! Signs in, registers three visits, locks, signs in again, and shows what the library says.
//!
//! Arguments: FOLDER URL KEY E-MAIL [logout]. The password comes from HOLDFAST_PASSWORD; a second
//! start needs none, because the session is on the disk.
mod holdfast;

use holdfast::{Error, Holdfast};
use serde_json::{json, Value};
use std::{env, process, time};

struct Visits {
    app: Holdfast,
    screen: Value, // what the user sees
}

impl Visits {
    /// Shows a decision, unless the screen shows a newer one.
    fn draw(&mut self, decision: Value) {
        if decision["number"].as_i64() <= self.screen["number"].as_i64() {
            return;
        }
        let word = |name: &str| decision[name].as_str().unwrap_or_default();
        println!("screen: {} ({})", word("screen"), word("reason"));
        if let Some(text) = decision["message"]["text"].as_str() {
            println!("message: {text}");
        }
        self.screen = decision;
    }

    /// Waits for an event, and handles it. The next call acknowledges it. An app with a window
    /// follows the events on a thread of its own.
    fn draw_next(&mut self) -> Result<(), Error> {
        let next = self.app.events().next();
        let mut event = next.ok_or_else(|| Error(json!("the app was closed")))?;
        println!("event: {}", event["type"].as_str().unwrap_or_default());
        if let Some(decision) = event.get_mut("decision") {
            self.draw(decision.take());
        }
        Ok(())
    }

    /// Makes a call that replies a decision, and waits until one asks for something.
    fn decide(&mut self, operation: &str, request: Value) -> Result<(), Error> {
        let decision = self.app.call(operation, request)?;
        self.draw(decision);
        while self.screen["screen"] == "wait" {
            self.draw_next()?;
        }
        Ok(())
    }

    /// Leads to the app's home.
    fn enter(&mut self, email: &str) -> Result<(), Error> {
        self.decide("session_resume", json!({}))?;
        if self.screen["screen"] == "sign_in" {
            let password = env::var("HOLDFAST_PASSWORD").unwrap_or_default();
            self.decide(
                "sign_in_complete",
                json!({"email": email, "password": password}),
            )?;
        }
        if self.screen["screen"] == "select_org" {
            let orgs = self.screen["orgs"].as_array().cloned().unwrap_or_default();
            if let Some(org) = orgs.iter().find(|org| org["status"] == "active") {
                println!("organisation: {}", org["name"].as_str().unwrap_or_default());
                self.decide("org_select", json!({"org_id": org["org_id"]}))?;
            }
        }
        match self.screen["screen"].as_str() {
            Some("home") => Ok(()),
            other => Err(Error(json!(format!(
                "the user is not in: {}",
                other.unwrap_or_default()
            )))),
        }
    }

    /// Queues three visits, and waits until the server has stored or refused them.
    fn register(&mut self) -> Result<(), Error> {
        let mut queued = Vec::new();
        for minutes in [15, 30, 45] {
            let now = time::SystemTime::now().duration_since(time::UNIX_EPOCH);
            let visit = json!({
                "kind": "activity",
                "payload": {"type": "visit", "minutes": minutes},
                "occurred_at_ms": now.unwrap_or_default().as_millis() as u64,
            });
            queued.push(self.app.call("queue_add", visit)?["id"].take());
        }
        for id in queued {
            let state = loop {
                let item = self.app.call("queue_get", json!({"id": id}))?;
                match item["state"].as_str() {
                    Some(state @ ("stored" | "parked")) => break state.to_owned(),
                    _ => self.draw_next()?,
                }
            };
            println!("{state}: {}", id.as_str().unwrap_or_default());
        }
        Ok(())
    }

    /// Ends the session.
    fn logout(&mut self) -> Result<(), Error> {
        let mut left = self.app.call("session_logout", json!({}))?;
        println!("unsent: {}", left["unsent"]);
        self.draw(left["decision"].take());
        Ok(())
    }

    fn run(&mut self, email: &str, leave: bool) -> Result<(), Error> {
        self.enter(email)?;
        self.register()?;
        if leave {
            return self.logout();
        }
        self.decide("session_lock", json!({}))?;
        self.enter(email)
    }
}

/// Where the keys are: in the desktop's keyring, or, for servers and tests, in files.
fn keystore() -> Value {
    match env::var("HOLDFAST_KEYSTORE").as_deref() {
        Ok("file") => json!({"kind": "file"}),
        _ => json!({"kind": "secret_service", "name": "com.example.visits"}),
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().collect();
    if arguments.len() < 5 {
        return Err("usage: visits FOLDER URL KEY E-MAIL [logout]".into());
    }
    let app = Holdfast::open(json!({
        "data_dir": arguments[1],
        "backend": {"url": arguments[2], "api_key": arguments[3]},
        "auth_methods": [{"id": "password", "flow": "password"}],
        "keystore": keystore(),
        "policy": {"biometric": "off"},
    }))?;
    let screen = json!({"number": 0});
    let mut visits = Visits { app, screen };
    visits.run(&arguments[4], arguments.len() > 5)?;
    Ok(())
}

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}"); // a main that returns the error would show it with Debug
        process::exit(1);
    }
}
