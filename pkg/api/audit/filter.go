package audit

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// maxFilter is the maximum length of the text of a filter, in bytes. No text of an event is longer.
const maxFilter = 512

var (
	exactCode  = regexp.MustCompile(`^[1-5][0-9][0-9]$`)
	classCodes = regexp.MustCompile(`^[1-5]xx$`)
)

// filterOf reads the parameters of a request.
func filterOf(r *http.Request) (f audit.Filter, err error) {
	for _, p := range []struct {
		name string
		into *string
	}{{"actor", &f.Actor}, {"action", &f.Action}, {"workspace", &f.Workspace}, {"object", &f.Object}} {
		if *p.into, err = text(r, p.name); err != nil {
			return f, err
		}
	}
	if f.Workspace != "" && !tenancy.IsUUID(f.Workspace) {
		return f, errs.InvalidField("query:workspace", "must be the UUID of a workspace")
	}
	if f.Since, err = moment(r, "since"); err != nil {
		return f, err
	}
	if f.Until, err = moment(r, "until"); err != nil {
		return f, err
	}
	if !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return f, errs.InvalidField("query:until", "must be after since")
	}
	f.MinCode, f.MaxCode, err = codes(r)
	return f, err
}

// text returns a parameter that may be given once. It refuses what no database takes.
func text(r *http.Request, name string) (string, error) {
	values := r.URL.Query()[name]
	value := strings.Join(values, "")
	switch {
	case len(values) > 1:
		return "", errs.InvalidField("query:"+name, "must be given once")
	case len(value) > maxFilter:
		return "", errs.InvalidField("query:"+name, "must be at most "+strconv.Itoa(maxFilter)+" bytes long")
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return "", errs.InvalidField("query:"+name, "must be UTF-8 without NUL")
	}
	return value, nil
}

// moment returns a parameter with a time.
func moment(r *http.Request, name string) (time.Time, error) {
	value, err := text(r, name)
	if err != nil || value == "" {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339, value)
	// Databases do not have all years.
	if year := t.UTC().Year(); err != nil || year < 1970 || year > 9999 {
		return time.Time{}, errs.InvalidField("query:"+name, "must be a time such as 2026-11-21T04:05:01Z")
	}
	return t, nil
}

// codes returns the range of the parameter code. It is zero for all codes.
func codes(r *http.Request) (least, most int, err error) {
	value, err := text(r, "code")
	switch {
	case err != nil || value == "":
		return 0, 0, err
	case exactCode.MatchString(value):
		code, err := strconv.Atoi(value)
		return code, code, err
	case classCodes.MatchString(value):
		class := int(value[0]-'0') * 100
		return class, class + 99, nil
	}
	return 0, 0, errs.InvalidField("query:code", "must be a status such as 403, or a class of them such as 4xx")
}
