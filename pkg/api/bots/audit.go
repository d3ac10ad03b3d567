package bots

import (
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// intentOf returns the intent of a patch of the spec.
func intentOf(b *v1alpha1.Bot, spec map[string]any) httpmw.Intent {
	var i httpmw.Intent
	if role, ok := spec["role"].(v1alpha1.Role); ok {
		i.Facts.Role = string(role)
		i.Reduces = len(spec) == 1 && tenancy.Lowers(b.Spec.Role, role)
	}
	if _, ok := spec["displayName"]; ok {
		i.Facts.Fields = []string{"displayName"}
	}
	return i
}
