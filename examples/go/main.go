// Visits is a whole app in six steps: sign in, choose, queue offline, restart, search, log out.
//
//	HOLDFAST_URL=... HOLDFAST_KEY=... HOLDFAST_PASSWORD=... ./visits [E-MAIL]
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"example.com/visits/holdfast"
)

type object = map[string]any

type screen struct {
	Screen  string
	Message *struct{ Text string }
	Orgs    []struct {
		ID     string `json:"org_id"`
		Status string
	}
}

// news is one thing that comes: it has one of the fields.
type news struct {
	Screen *screen
	Notice *struct{ Text string }
	Sync   *struct {
		Contacts *int64 `json:"contacts_ms"`
	}
}

// visits is an open app, and the screen that its user sees.
type visits struct {
	app   holdfast.App
	shown screen
}

// open opens the app, and waits for a screen that waits for the user.
func open() (*visits, error) {
	opened, err := holdfast.Open[struct {
		App    holdfast.App
		Screen *screen
	}](object{
		"data_dir":    "app-data",
		"backend":     object{"url": os.Getenv("HOLDFAST_URL"), "api_key": os.Getenv("HOLDFAST_KEY")},
		"template":    "volunteers",
		"development": true, // or keystore: secret_service, the desktop's keyring
	})
	if err != nil {
		return nil, err
	}
	v := &visits{app: opened.App, shown: screen{Screen: "wait"}}
	if opened.Screen != nil {
		v.draw(*opened.Screen)
	}
	return v, v.settle()
}

func (v *visits) draw(next screen) {
	v.shown = next
	if next.Screen != "wait" {
		fmt.Print("screen: ", next.Screen)
		if next.Message != nil {
			fmt.Print(" ", next.Message.Text)
		}
		fmt.Println()
	}
}

// next shows one thing that comes. An app with a window does this on a goroutine of its own.
func (v *visits) next() (news, error) {
	next, err := holdfast.Next[news](v.app)
	if err != nil {
		return news{}, err
	}
	if next == nil {
		return news{}, errors.New("the app was closed")
	}
	if next.Screen != nil {
		v.draw(*next.Screen)
	}
	if next.Notice != nil {
		fmt.Println("notice:", next.Notice.Text) // such as: the server has refused the visit
	}
	return *next, nil
}

func (v *visits) settle() (err error) {
	for err == nil && v.shown.Screen == "wait" {
		_, err = v.next()
	}
	return err
}

// act makes a call that leads to a screen, and waits for it.
func (v *visits) act(operation string, request any) error {
	if _, err := holdfast.Call[object](v.app, operation, request); err != nil {
		return err
	}
	v.shown.Screen = "wait"
	return v.settle()
}

// begin signs in, chooses an organisation, and queues a visit without a network: its id.
func (v *visits) begin(email string) (id string, err error) {
	if v.shown.Screen == "sign_in" {
		user := object{"email": email, "password": os.Getenv("HOLDFAST_PASSWORD")}
		err = v.act("sign_in_complete", user)
	}
	for _, org := range v.shown.Orgs {
		if err == nil && v.shown.Screen == "select_org" && org.Status == "active" {
			err = v.act("org_select", object{"org_id": org.ID})
		}
	}
	if err == nil && v.shown.Screen != "home" {
		err = errors.New("the user is not in: " + v.shown.Screen)
	}
	if err == nil {
		_, err = holdfast.Call[object](v.app, "network_report", object{"online": false})
	}
	if err != nil {
		return "", err
	}
	item, err := holdfast.Call[struct{ ID string }](v.app, "queue_add", object{
		"kind": "activity", "occurred_at_ms": time.Now().UnixMilli(),
		"payload": object{"type": "visit", "minutes": 45}})
	return item.ID, err // on disk: a crash does not lose it
}

// finish waits until the visit is sent, searches, and logs out.
func (v *visits) finish(id string) error {
	for state := ""; state != "stored" && state != "parked"; {
		next, err := v.next()
		if err != nil {
			return err
		}
		if next.Sync == nil || next.Sync.Contacts == nil {
			continue
		}
		item, err := holdfast.Call[struct{ State string }](v.app, "queue_get", object{"id": id})
		if err != nil {
			return err
		}
		if state = item.State; state == "stored" || state == "parked" {
			fmt.Println("the visit:", state)
		}
	}
	found, err := holdfast.Call[struct {
		Total    int
		Contacts []struct{ Name string }
	}](v.app, "contact_search", object{"query": "", "limit": 3})
	if err != nil {
		return err
	}
	fmt.Println("contacts:", found.Total, found.Contacts)
	return v.act("session_logout", nil) // refused while something is unsent
}

func run(email string) error {
	v, err := open()
	if err != nil {
		return err
	}
	id, err := v.begin(email)
	v.app.Close()
	if err != nil {
		return err
	}
	fmt.Println("queued:", id)
	// Again, without a sign-in
	if v, err = open(); err != nil {
		return err
	}
	defer v.app.Close()
	return v.finish(id)
}

func main() {
	email := "mentor@example.org"
	if len(os.Args) > 1 {
		email = os.Args[1]
	}
	if err := run(email); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
