package audit

import (
	"net/http"
	"regexp"
	"strconv"

	"github.com/faroshq/kedge-hub/pkg/api/internal/query"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

var (
	exactCode  = regexp.MustCompile(`^[1-5][0-9][0-9]$`)
	classCodes = regexp.MustCompile(`^[1-5]xx$`)
)

// filterOf reads the parameters of a request.
func filterOf(r *http.Request) (f audit.Filter, err error) {
	for _, p := range []struct {
		name string
		into *string
	}{{"actor", &f.Actor}, {"action", &f.Action}, {"object", &f.Object}} {
		if *p.into, err = query.Text(r, p.name); err != nil {
			return f, err
		}
	}
	if f.Workspace, err = query.UUID(r, "workspace", "a workspace"); err != nil {
		return f, err
	}
	if f.Since, f.Until, err = query.Between(r, "since", "until"); err != nil {
		return f, err
	}
	f.MinCode, f.MaxCode, err = codes(r)
	return f, err
}

// codes returns the range of the parameter code. It is zero for all codes.
func codes(r *http.Request) (least, most int, err error) {
	value, err := query.Text(r, "code")
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
