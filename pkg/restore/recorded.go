package restore

import (
	"fmt"
	"time"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

const (
	// quietAfter is the time after which a replica that has not recorded the ends of its chains does not run any more. One
	// that runs records them every hour, and when it stops.
	quietAfter = 3 * time.Hour
	// skew is how much later than the time of a backup something in it can seem to be: the operator's clock says the
	// one, those of hubs the other.
	skew = time.Minute
)

// Restored is what a kcp says of itself that was restored by its own means.
type Restored struct {
	// BackupAt is when the backup was begun, by the operator.
	BackupAt time.Time
	// Recorded are the ends of the audit chains that kcp has, by replica.
	Recorded map[string]audit.Recorded
	// Renewed is the last renewal of the leader's Lease that kcp has. The zero time means that there is none.
	Renewed time.Time
}

// OrderFor returns the Order for a kcp that was restored by its own means. It has no files yet.
//
// The ends of the chains are those that hubs had recorded in kcp, at most an hour before the backup, so the time of the
// backup says which events it has. A leader that renewed its Lease last before that time tells it better: what is between
// the two is then replayed, too. What kcp has from after the backup was written by a hub that has worked with the restored
// kcp since. It says nothing about the backup.
func OrderFor(r Restored) Order {
	o := Order{BackupAt: r.BackupAt.UTC(), EarlyHeads: true}
	late := r.BackupAt.Add(skew)
	switch {
	case r.Renewed.After(late):
		o.Doubts = append(o.Doubts, fmt.Sprintf("a hub has worked with the restored kcp: its Lease was renewed at %s; "+
			"restore the data of kcp again, and start no hub before this command", r.Renewed.UTC().Format(time.RFC3339)))
	case !r.Renewed.IsZero() && r.Renewed.Before(r.BackupAt):
		o.BackupAt = r.Renewed.UTC()
	}
	for replica, recorded := range r.Recorded {
		switch {
		case recorded.At.After(late):
			o.Doubts = append(o.Doubts, fmt.Sprintf("replica %s recorded the end of its audit log at %s, after the backup: "+
				"a hub has worked with the restored kcp", replica, recorded.At.UTC().Format(time.RFC3339)))
		case recorded.At.Before(o.BackupAt.Add(-quietAfter)):
			o.Quiet = append(o.Quiet, recorded.Heads...)
		default:
			o.Heads = append(o.Heads, recorded.Heads...)
		}
	}
	if len(o.Heads) == 0 {
		// No hub ran when the backup was made. Any of these can be the one that ran last.
		o.Heads, o.Quiet = o.Quiet, nil
	}
	return o
}
