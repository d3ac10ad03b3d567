package login

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// maxDescription is the maximum length of a description, in characters.
const maxDescription = 128

// params are the parameters of a query or a form. Each is given once.
type params map[string]string

// parse decodes a query or a form. It refuses a parameter that is given twice, as RFC 6749
// demands, and does not judge which parameters there are.
func parse(raw string) (params, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "the parameters are not well-formed")
	}
	p := make(params, len(values))
	for name, given := range values {
		if len(given) > 1 {
			return nil, errs.New(errs.Invalid, fmt.Sprintf("the parameter %s is given more than once", printable(name)))
		}
		if !utf8.ValidString(given[0]) {
			return nil, errs.New(errs.Invalid, fmt.Sprintf("the parameter %s is not UTF-8", printable(name)))
		}
		p[name] = given[0]
	}
	return p, nil
}

// form reads the form in the body of a POST. Parameters in the query are refused: URLs are
// logged on their way, and forms contain secrets.
func form(r *http.Request) (params, error) {
	if r.URL.RawQuery != "" {
		return nil, errs.New(errs.Invalid, "send the parameters in the body and not in the URL")
	}
	got, attributes, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := attributes["charset"]; err != nil || got != "application/x-www-form-urlencoded" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, errs.New(errs.UnsupportedMediaType, "send the body with Content-Type: application/x-www-form-urlencoded")
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, httpapi.MaxBody+1))
	switch {
	case err != nil:
		return nil, errs.Wrap(errs.Invalid, err, "the body could not be read")
	case len(raw) > httpapi.MaxBody:
		return nil, errs.New(errs.TooLarge, "the body is larger than 64 KiB")
	}
	return parse(string(raw))
}

// clientForm reads the form of a request of the command line.
func clientForm(r *http.Request) (params, error) {
	p, err := form(r)
	if err != nil {
		return nil, err
	}
	return p, p.client()
}

// client refuses every client but the command line.
func (p params) client() error {
	id, err := p.required("client_id")
	if err == nil && id != clientID {
		err = &refusal{code: "invalid_client", status: http.StatusUnauthorized, message: "the client_id is not known here; it is " + clientID}
	}
	return err
}

// required returns a parameter that must be there.
func (p params) required(name string) (string, error) {
	value := p[name]
	if value == "" {
		return "", errs.InvalidField(name, "is missing")
	}
	return value, nil
}

// exactly refuses a parameter that has another value.
func (p params) exactly(name, value string) error {
	got, err := p.required(name)
	if err == nil && got != value {
		err = errs.InvalidField(name, "must be "+value)
	}
	return err
}

// cleanDescription returns the text of a client without control and formatting characters, cut
// to the maximum length. It is shown to the person.
func cleanDescription(s string) string {
	kept := strings.TrimSpace(printable(s))
	if utf8.RuneCountInString(kept) > maxDescription {
		kept = strings.TrimSpace(string([]rune(kept)[:maxDescription]))
	}
	return kept
}

// printable removes control and formatting characters, such as those that reverse the direction
// of writing.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c == utf8.RuneError || !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, s)
}
