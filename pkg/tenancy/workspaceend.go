package tenancy

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// AtEnd returns a Workspace as it is once its time is over: soft-deleted at that moment, whether or not
// that was written by then.
func (w Workspace) AtEnd() Workspace {
	if w.DeletionRequestedAt == nil {
		w.DeletionRequestedAt = w.ExpiresAt
	}
	return w
}

// Expired reports whether the Workspace is soft-deleted because its time was over, and not by a person
// before that.
func (w Workspace) Expired() bool {
	return w.ExpiresAt != nil && w.DeletionRequestedAt != nil && !w.DeletionRequestedAt.Before(w.ExpiresAt)
}

// Graces are the times during which something soft-deleted can be undeleted.
type Graces struct {
	// Deletion is that after a request, and Expired at most that of a Workspace whose time was over.
	Deletion, Expired time.Duration
}

// PurgeAt is the end of the grace period of a Workspace, or nil if it is not soft-deleted.
func (g Graces) PurgeAt(w Workspace) *metav1.Time {
	if w.Expired() {
		return PurgeAt(w.DeletionRequestedAt, min(g.Deletion, g.Expired))
	}
	return PurgeAt(w.DeletionRequestedAt, g.Deletion)
}

// SetWorkspaceEnd sets the end of a Workspace in its annotations; nil takes it off.
func SetWorkspaceEnd(annotations map[string]string, end *metav1.Time) {
	if end == nil {
		delete(annotations, v1alpha1.ExpiresAtAnnotation)
		return
	}
	annotations[v1alpha1.ExpiresAtAnnotation] = ExpiryText(end)
}

// MarkEnded soft-deletes a Workspace in its annotations if its time is over. It reports whether it did.
func MarkEnded(w Workspace, annotations map[string]string, now time.Time) bool {
	if w.DeletionRequestedAt != nil || !Ended(w.ExpiresAt, now) {
		return false
	}
	annotations[v1alpha1.DeletionRequestedAtAnnotation] = ExpiryText(w.ExpiresAt)
	return true
}

// Gone says to those who were in a Workspace, or in an Organization if ws is nil, when and why it ended.
func Gone(org Org, ws *Workspace) string {
	const undelete = "; until its grace period ends it can be undeleted"
	switch {
	case org.Deleted():
		return "the organization was deleted" + at(org.Status.DeletionRequestedAt) + undelete
	case ws != nil && ws.Expired():
		return "the time of the workspace was over" + at(ws.ExpiresAt) + undelete
	case ws != nil:
		return "the workspace was deleted" + at(ws.DeletionRequestedAt) + undelete
	}
	return "it was deleted" + undelete
}

func at(moment *metav1.Time) string {
	if moment == nil {
		return ""
	}
	return " at " + ExpiryText(moment)
}
