package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Why says whether somebody may do something in a workspace, where their access comes from, and what is
// missing.
type Why struct {
	Answer `json:"-"`
	// Allowed is the verdict of the hub and of kcp.
	Allowed bool `json:"allowed"`
	// User is a name. Bot is a UUID. One of them is empty.
	User        string `json:"user,omitempty"`
	Bot         string `json:"bot,omitempty"`
	Verb        string `json:"verb"`
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	// Role is the role in the workspace, empty for somebody without access.
	Role Role `json:"role,omitempty"`
	// Sudo is true for somebody who may act as an admin for one request at a time.
	Sudo bool `json:"sudo,omitempty"`
	// Through has the source of the role first.
	Through []AccessSource `json:"through"`
	// Missing has what refuses the action and, where it is allowed, what may still refuse it.
	Missing []Missing `json:"missing"`
}

// AccessSource is a source of access to a workspace.
type AccessSource struct {
	Through   string       `json:"through"`
	Role      Role         `json:"role"`
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
}

// Missing is something that an action lacks.
type Missing struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Role is the least role that would do.
	Role Role `json:"role,omitempty"`
	// Slug is that of the provider to enable.
	Slug string `json:"slug,omitempty"`
}
