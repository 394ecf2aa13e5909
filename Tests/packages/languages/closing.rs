//! Makes mistakes, and closes a handle while another thread waits for news.
mod holdfast;

use holdfast::{Error, Holdfast};
use serde_json::json;
use std::{env, thread};

fn refused<T>(result: Result<T, Error>) {
    match result {
        Ok(_) => println!("not refused"),
        Err(Error(error)) => {
            let field = error["field"]
                .as_str()
                .map_or(String::new(), |field| format!(" {field}"));
            println!(
                "refused: {}{field}",
                error["code"].as_str().unwrap_or_default()
            );
        }
    }
}

fn main() -> Result<(), Error> {
    let mut config = json!({
        "data_dir": env::args().nth(1),
        "keystore": {"kind": "file"},
        "policy": {"biometric": "off"},
        "auth_methods": [{"id": "p", "flow": "password"}],
    });
    refused(Holdfast::open(config.clone()));
    config["backend"] = json!({"url": "http://127.0.0.1:9", "api_key": "k"});
    let mut wrong = config.clone();
    wrong["http"] = json!({"connections": 0});
    refused(Holdfast::open(wrong));
    let (app, opened) = Holdfast::open(config)?;
    assert_eq!(opened["screen"]["screen"], "sign_in");
    refused(app.call("network_report", json!({"online": "yes"})));
    thread::scope(|scope| {
        let follower = scope.spawn(|| loop {
            if let Err(Error(error)) = app.next() {
                return error["code"] == "handle.closed";
            }
        });
        scope.spawn(|| app.call("close", json!({})));
        assert!(follower.join().expect("the thread ends"));
    });
    println!("no more news");
    refused(app.call("queue_list", json!({})));
    drop(app);
    println!("closed again");
    Ok(())
}
