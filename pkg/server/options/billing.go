package options

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// BillingOptions are the flags of cost centers.
type BillingOptions struct {
	// DefaultCostCenter (--default-cost-center) is the cost center of a new Organization. Empty means none.
	DefaultCostCenter string
	// RequireCostCenter (--require-cost-center) refuses Organizations and Workspaces without a cost center,
	// but for personal Organizations and the Workspaces in them. Default false.
	RequireCostCenter bool
	// CostCentersFile (--cost-centers-file) has the cost centers that may be written, one in each line. Empty
	// allows all.
	CostCentersFile string
}

func (o *BillingOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.DefaultCostCenter, "default-cost-center", o.DefaultCostCenter,
		"Cost center of a new organization that is created without one. A new workspace takes that of its organization.")
	fs.BoolVar(&o.RequireCostCenter, "require-cost-center", o.RequireCostCenter,
		"Refuse new organizations and workspaces without a cost center, and requests that take it away. "+
			"Personal organizations and the workspaces in them need none.")
	fs.StringVar(&o.CostCentersFile, "cost-centers-file", o.CostCentersFile,
		"File with the cost centers that people can set, one in each line. It is read again when it changes; "+
			"a cost center that is not in it any more stays where it stands. Without it every value can be set.")
}

func (o *BillingOptions) complete(fail func(flag, format string, args ...any)) {
	if utf8.RuneCountInString(o.DefaultCostCenter) > tenancy.MaxCostCenter {
		fail("default-cost-center", "has more than %d characters", tenancy.MaxCostCenter)
	}
	if _, err := o.ReadCostCenters(); err != nil {
		fail("cost-centers-file", "%v", err)
	}
}

// ReadCostCenters reads the file CostCentersFile. It returns nil if there is none.
func (o *BillingOptions) ReadCostCenters() (map[string]bool, error) {
	if o.CostCentersFile == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(o.CostCentersFile)
	if err != nil {
		return nil, fmt.Errorf("%w; name a file that the hub can read", err)
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("the file is not UTF-8")
	}
	listed, n := map[string]bool{}, 0
	for line := range strings.Lines(strings.TrimPrefix(string(raw), "\ufeff")) {
		n++
		value := strings.TrimSpace(line)
		if utf8.RuneCountInString(value) > tenancy.MaxCostCenter {
			return nil, fmt.Errorf("line %d has more than %d characters", n, tenancy.MaxCostCenter)
		}
		if value != "" {
			listed[value] = true
		}
	}
	if len(listed) == 0 {
		return nil, errors.New("the file has no cost center; give one in each line")
	}
	if o.DefaultCostCenter != "" && !listed[o.DefaultCostCenter] {
		return nil, fmt.Errorf("the file does not have %q, which is --default-cost-center", o.DefaultCostCenter)
	}
	return listed, nil
}
