package tenancy

import (
	"errors"
	"fmt"
	"slices"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// CauseQuota is the type of the cause of a refusal by a quota (O-5, O-6).
const CauseQuota = "QuotaExceeded"

// Limit is the effective quota: own if it is set, else def.
func Limit(own int32, def int) int {
	if own > 0 {
		return int(own)
	}
	return def
}

// CheckOrgQuota refuses another Organization if the User's quota is used up (O-5).
func CheckOrgQuota(limit, used int) error {
	return checkQuota(limit, used, "you have created %d of at most %d organizations (deleted ones count until their grace period ends); ask a platform admin for more")
}

// CheckWorkspaceQuota refuses another Workspace if the Organization's quota is used up (O-6).
func CheckWorkspaceQuota(limit, used int) error {
	return checkQuota(limit, used, "this organization has %d of at most %d workspaces (deleted ones count until their grace period ends); ask a platform admin for more")
}

// MaxCatalogEntries is the maximum number of CatalogEntries of one Organization. The hub reads
// the export of each once a minute and probes its server: members decide how many there are.
const MaxCatalogEntries = 200

// CheckCatalogQuota refuses another CatalogEntry in an Organization that has used already.
func CheckCatalogQuota(used int) error {
	return checkQuota(MaxCatalogEntries, used, "this organization has %d of at most %d catalog entries; delete one that is not needed any more")
}

func checkQuota(limit, used int, format string) error {
	if used < limit {
		return nil
	}
	message := fmt.Sprintf(format, used, limit)
	return errs.New(errs.Forbidden, message, errs.Cause{Type: CauseQuota, Message: message})
}

// IsQuota reports whether an error refuses what exceeds a quota.
func IsQuota(err error) bool {
	var e *errs.Error
	return errors.As(err, &e) && slices.ContainsFunc(e.Causes, func(c errs.Cause) bool { return c.Type == CauseQuota })
}
