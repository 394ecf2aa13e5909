// Closing makes mistakes, and closes a handle while another goroutine waits for news.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"example.com/visits/holdfast"
)

type object = map[string]any

type opened struct {
	App    holdfast.App
	Screen object
}

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
	_, err := holdfast.Open[opened](config)
	refused(err)
	config["backend"] = object{"url": "http://127.0.0.1:9", "api_key": "k"}
	config["http"] = object{"connections": 0}
	_, err = holdfast.Open[opened](config)
	refused(err)
	delete(config, "http")
	first, err := holdfast.Open[opened](config)
	if err != nil || first.Screen["screen"] != "sign_in" {
		panic(err)
	}
	app := first.App
	_, err = holdfast.Call[object](app, "network_report", object{"online": "yes"})
	refused(err)
	ended := make(chan error)
	go func() {
		for {
			news, err := holdfast.Next[object](app)
			if err != nil || news == nil {
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
		fmt.Println("no more news")
	}
	<-closed
	_, err = holdfast.Call[object](app, "queue_list", nil)
	refused(err)
	app.Close()
	fmt.Println("closed again")
}
