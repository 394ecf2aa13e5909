//! Calls the C library and its driver.
use serde_json::Value;
use std::ffi::CStr;

#[link(name = "holdfast_http")]
extern "C" {
    fn holdfast_http_call(app: i64, operation: *const u8, request: *const u8) -> *mut u8;
    fn holdfast_http_free(text: *mut u8);
}

/// Why a call was refused: an object of `code`, `message`, `field`, `retryable` and `detail`.
#[derive(Debug)]
pub struct Error(pub Value);

impl std::error::Error for Error {}
impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// An open handle. Any thread may use it, and call "close" while others use it.
pub struct Holdfast(i64);

impl Holdfast {
    /// Opens a handle, whose driver sends the requests from now on. The reply has the first screen.
    pub fn open(config: Value) -> Result<(Holdfast, Value), Error> {
        let opened = Holdfast(0).call("open", config)?;
        Ok((Holdfast(opened["app"].as_i64().unwrap_or(0)), opened))
    }

    /// Makes a call by its name.
    pub fn call(&self, operation: &str, request: Value) -> Result<Value, Error> {
        let (name, request) = (format!("{operation}\0"), format!("{request}\0"));
        let text = unsafe { holdfast_http_call(self.0, name.as_ptr(), request.as_ptr()) };
        let reply = serde_json::from_slice(unsafe { CStr::from_ptr(text.cast()) }.to_bytes());
        unsafe { holdfast_http_free(text) };
        let reply: Value = reply.expect("a reply is JSON");
        let error = reply.get("error").cloned().map(Error);
        error.map_or(Ok(reply), Err)
    }

    /// Waits for one thing: a screen, an answer, a notice or sync. Asking for the next one
    /// acknowledges a notice. When the handle is closed, the error has the code handle.closed.
    pub fn next(&self) -> Result<Value, Error> {
        self.call("next", Value::Null)
    }
}

impl Drop for Holdfast {
    fn drop(&mut self) {
        let _ = self.call("close", Value::Null);
    }
}
