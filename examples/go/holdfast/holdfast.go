// Package holdfast calls the C library and its driver.
package holdfast

// #cgo pkg-config: holdfast_http
// #include <holdfast_http.h>
import "C"

import "encoding/json"

// App is an open handle. Any goroutine may use it, and close it while others use it.
type App int64

// Error says why a call was refused. Field is a JSON Pointer into the request.
type Error struct {
	Code, Message, Field string
	Retryable            bool
	Detail               json.RawMessage
}

func (e *Error) Error() string { return e.Code + e.Field + ": " + e.Message }

// Open opens a handle, whose driver sends the requests from now on. The reply has the App, and the
// first Screen.
func Open[Reply any](config any) (Reply, error) { return Call[Reply](0, "open", config) }

// Call makes a call by its name. Reply is a struct for the fields that you need, or a map.
func Call[Reply any](app App, operation string, request any) (reply Reply, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return reply, err
	}
	name, text := C.CString(operation), C.CString(string(body))
	defer C.holdfast_http_free(name)
	defer C.holdfast_http_free(text)
	answer := C.holdfast_http_call(C.int64_t(app), name, text)
	defer C.holdfast_http_free(answer)
	var refused struct{ Error *Error }
	if json.Unmarshal([]byte(C.GoString(answer)), &refused); refused.Error != nil {
		return reply, refused.Error
	}
	err = json.Unmarshal([]byte(C.GoString(answer)), &reply)
	return reply, err
}

// Next waits for one thing: a screen, an answer, a notice or sync. Asking for the next one
// acknowledges a notice. It is nil when the app is closed.
func Next[News any](app App) (*News, error) {
	news, err := Call[News](app, "next", nil)
	if refused, ok := err.(*Error); ok && refused.Code == "handle.closed" {
		return nil, nil
	}
	return &news, err
}

// Close ends what others wait for. It may be called again.
func (app App) Close() { _, _ = Call[any](app, "close", nil) }
