package tenancy

import (
	"fmt"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// CauseQuota is the cause of a refusal under O-5 and O-6.
const CauseQuota = "QuotaExceeded"

// Limit is the quota in force: own where it is set, else the default.
func Limit(own int32, def int) int {
	if own > 0 {
		return int(own)
	}
	return def
}

// CheckOrgQuota refuses one more Org to somebody who has used up theirs (O-5).
func CheckOrgQuota(limit, used int) error {
	return checkQuota(limit, used, "you have created %d of at most %d organizations (deleted ones count until their grace ends); ask a platform admin for more")
}

// CheckWorkspaceQuota refuses one more Workspace in an Org that is full (O-6).
func CheckWorkspaceQuota(limit, used int) error {
	return checkQuota(limit, used, "this organization has %d of at most %d workspaces (deleted ones count until their grace ends); ask a platform admin for more")
}

func checkQuota(limit, used int, format string) error {
	if used < limit {
		return nil
	}
	message := fmt.Sprintf(format, used, limit)
	return errs.New(errs.Forbidden, message, errs.Cause{Type: CauseQuota, Message: message})
}
