// Visits signs in, registers three visits, locks, signs in again, and shows what the library says.
//
//	HOLDFAST_PASSWORD=... ./visits FOLDER URL KEY E-MAIL [logout]
//
// A second start needs no password: the session is on the disk.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"example.com/visits/holdfast"
)

type object = map[string]any

type decision struct {
	Screen, Reason string
	Number         int
	Message        *struct{ Text string }
	Orgs           []struct {
		ID           string `json:"org_id"`
		Name, Status string
	}
}

type event struct {
	Type     string
	Decision *decision
}

type visits struct {
	app    holdfast.App
	screen decision // what the user sees
}

// draw shows a decision, unless the screen shows a newer one.
func (v *visits) draw(next decision) {
	if next.Number <= v.screen.Number {
		return
	}
	v.screen = next
	fmt.Printf("screen: %s (%s)\n", next.Screen, next.Reason)
	if next.Message != nil {
		fmt.Println("message:", next.Message.Text)
	}
}

// drawNext waits for an event, and handles it. The next call acknowledges it. An app with a window
// follows the events on a goroutine of its own.
func (v *visits) drawNext() error {
	next, err := holdfast.Next[event](v.app)
	if err != nil {
		return err
	}
	if next == nil {
		return errors.New("the app was closed")
	}
	fmt.Println("event:", next.Type)
	if next.Decision != nil {
		v.draw(*next.Decision)
	}
	return nil
}

// decide makes a call that replies a decision, and waits until one asks for something.
func (v *visits) decide(operation string, request object) error {
	reply, err := holdfast.Call[decision](v.app, operation, request)
	if err != nil {
		return err
	}
	v.draw(reply)
	for err == nil && v.screen.Screen == "wait" {
		err = v.drawNext()
	}
	return err
}

// enter leads to the app's home.
func (v *visits) enter(email string) error {
	err := v.decide("session_resume", nil)
	if err == nil && v.screen.Screen == "sign_in" {
		password := os.Getenv("HOLDFAST_PASSWORD")
		err = v.decide("sign_in_complete", object{"email": email, "password": password})
	}
	if err == nil && v.screen.Screen == "select_org" {
		for _, org := range v.screen.Orgs {
			if org.Status == "active" {
				fmt.Println("organisation:", org.Name)
				err = v.decide("org_select", object{"org_id": org.ID})
				break
			}
		}
	}
	if err == nil && v.screen.Screen != "home" {
		err = errors.New("the user is not in: " + v.screen.Screen)
	}
	return err
}

// register queues three visits, and waits until the server has stored or refused them.
func (v *visits) register() error {
	var queued []string
	for minutes := 15; minutes <= 45; minutes += 15 {
		visit := object{"kind": "activity", "occurred_at_ms": time.Now().UnixMilli(),
			"payload": object{"type": "visit", "minutes": minutes}}
		added, err := holdfast.Call[struct{ ID string }](v.app, "queue_add", visit)
		if err != nil {
			return err
		}
		queued = append(queued, added.ID)
	}
	for _, id := range queued {
		for {
			item, err := holdfast.Call[struct{ State string }](v.app, "queue_get", object{"id": id})
			if err != nil {
				return err
			}
			if item.State == "stored" || item.State == "parked" {
				fmt.Printf("%s: %s\n", item.State, id)
				break
			}
			if err = v.drawNext(); err != nil {
				return err
			}
		}
	}
	return nil
}

// logout ends the session.
func (v *visits) logout() error {
	left, err := holdfast.Call[struct {
		Unsent   int
		Decision decision
	}](v.app, "session_logout", nil)
	if err == nil {
		fmt.Println("unsent:", left.Unsent)
		v.draw(left.Decision)
	}
	return err
}

// keystore says where the keys are: in the desktop's keyring, or, for servers and tests, in files.
func keystore() object {
	if os.Getenv("HOLDFAST_KEYSTORE") == "file" {
		return object{"kind": "file"}
	}
	return object{"kind": "secret_service", "name": "com.example.visits"}
}

func run(folder, url, key, email string, leave bool) error {
	app, err := holdfast.Open(object{
		"data_dir":     folder,
		"backend":      object{"url": url, "api_key": key},
		"auth_methods": []object{{"id": "password", "flow": "password"}},
		"keystore":     keystore(),
		"policy":       object{"biometric": "off"},
	})
	if err != nil {
		return err
	}
	defer app.Close()
	v := visits{app: app}
	if err = v.enter(email); err == nil {
		err = v.register()
	}
	if err != nil {
		return err
	}
	if leave {
		return v.logout()
	}
	if err = v.decide("session_lock", nil); err == nil {
		err = v.enter(email)
	}
	return err
}

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: visits FOLDER URL KEY E-MAIL [logout]")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4], len(os.Args) > 5); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
