// Closing makes mistakes, and closes a handle while another goroutine waits for an event.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"example.com/visits/holdfast"
)

type object = map[string]any

func refused(err error) {
	var refusal *holdfast.Error
	switch {
	case !errors.As(err, &refusal):
		fmt.Println("not refused", err)
	case strings.TrimSpace(err.Error()) != err.Error() || !strings.Contains(err.Error(), ": "):
		fmt.Printf("an error is a sentence, not %q\n", err)
	case refusal.Field == "":
		fmt.Println("refused:", refusal.Code)
	default:
		fmt.Println("refused:", refusal.Code, refusal.Field)
	}
}

func main() {
	config := object{
		"data_dir":     os.Args[1],
		"keystore":     object{"kind": "file"},
		"policy":       object{"biometric": "off"},
		"auth_methods": []object{{"id": "p", "flow": "password"}},
	}
	_, err := holdfast.Open(config)
	refused(err)
	config["backend"] = object{"url": "http://127.0.0.1:9", "api_key": "k"}
	config["http"] = object{"connections": 0}
	_, err = holdfast.Open(config)
	refused(err)
	delete(config, "http")
	app, err := holdfast.Open(config)
	if err != nil {
		panic(err)
	}
	if _, err = holdfast.Call[object](app, "session_resume", nil); err != nil {
		panic(err)
	}
	_, err = holdfast.Call[object](app, "network_set", object{"online": "yes"})
	refused(err)
	ended := make(chan error)
	go func() {
		for {
			event, err := holdfast.Next[object](app)
			if err != nil || event == nil {
				ended <- err
				return
			}
		}
	}()
	closed := make(chan bool)
	go func() {
		app.Close()
		closed <- true
	}()
	if err = <-ended; err == nil {
		fmt.Println("no more events")
	}
	<-closed
	_, err = holdfast.Call[object](app, "queue_list", nil)
	refused(err)
	app.Close()
	fmt.Println("closed again")
}
