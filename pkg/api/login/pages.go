package login

import (
	"bytes"
	"cmp"
	"embed"
	"html/template"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/log"
)

//go:embed templates
var files embed.FS

// message is a page with text only.
type message struct {
	Title string
	Text  []string
	// RequestID is set if the page reports an error.
	RequestID string
}

// enterCode is the page for the code of a device.
type enterCode struct {
	// UserCode is what the person has typed.
	UserCode string
	// Unknown says that there is no such code.
	Unknown bool
	// LogIn is the link to the login. It is empty without a code.
	LogIn string
}

// confirm is the page that asks whether a device may log in.
type confirm struct {
	UserCode, Description, Peer, Person string
	// Login is the encrypted confirmation.
	Login string
}

// computer is the page that asks whether the command line of a computer may log in.
type computer struct {
	Description, Person string
	// Peer is the address of the browser. Listener is the address and port of the command line.
	Peer, Listener string
	// Login is the encrypted confirmation.
	Login string
}

// pages are the parsed templates and the stylesheet.
type pages struct {
	messages, codes, confirms, computers, tokens *template.Template
	css                                          []byte
}

func newPages() pages {
	page := func(name string) *template.Template {
		return template.Must(template.ParseFS(files, "templates/layout.html", "templates/"+name+".html"))
	}
	css, err := files.ReadFile("templates/style.css")
	if err != nil {
		panic("login: " + err.Error())
	}
	return pages{messages: page("message"), codes: page("code"), confirms: page("confirm"), computers: page("computer"), tokens: page("token"), css: css}
}

func (p pages) message(w http.ResponseWriter, status int, m message) error {
	return write(w, status, p.messages, m)
}

func (p pages) code(w http.ResponseWriter, status int, c enterCode) error {
	return write(w, status, p.codes, c)
}

func (p pages) confirm(w http.ResponseWriter, c confirm) error {
	return write(w, http.StatusOK, p.confirms, c)
}

func (p pages) computer(w http.ResponseWriter, c computer) error {
	return write(w, http.StatusOK, p.computers, c)
}

func (p pages) token(w http.ResponseWriter, status int, e enterToken) error {
	return write(w, status, p.tokens, e)
}

// write renders the page before it answers, so that an answer is never cut short.
func write(w http.ResponseWriter, status int, t *template.Template, data any) error {
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "layout.html", data); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w)
	return nil
}

// handle serves an endpoint that reports errors as a page.
func (p pages) handle(serve httpapi.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := serve(w, r)
		if err == nil {
			return
		}
		e := refusalOf(r, err)
		e.report(w, r)
		if err := p.message(w, e.status, message{Title: cmp.Or(e.title, titleOf(e)), Text: []string{sentence(e.message)}, RequestID: w.Header().Get(httpmw.RequestIDHeader)}); err != nil {
			log.From(r.Context()).Error("the page could not be rendered", zap.Error(err))
		}
	}
}

// style serves the stylesheet of the pages.
func (p pages) style(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write(p.css)
}

func titleOf(e *refusal) string {
	switch e.status {
	case http.StatusForbidden:
		return "You are not logged in"
	case http.StatusNotFound:
		return "Not found"
	case http.StatusServiceUnavailable:
		return "Not available at the moment"
	case http.StatusTooManyRequests:
		return "Too many requests"
	}
	return "This request is not valid"
}

// sentence turns the message of an error into a sentence. Names of parameters keep their case.
func sentence(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	word, _, _ := strings.Cut(s, " ")
	if !strings.HasSuffix(word, ":") {
		s = string(unicode.ToUpper(first)) + s[size:]
	}
	return strings.TrimSuffix(s, ".") + "."
}
