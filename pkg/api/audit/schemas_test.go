package audit

import (
	"testing"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/test/contract"
)

func TestSchemas_equalTheTypes(t *testing.T) {
	t.Parallel()
	contract.RequireFields(t, map[string]any{
		"AuditEvent": view{}, "AuditActor": actorView{}, "AuditFacts": audit.Facts{}, "AuditResource": audit.Resource{}, "AuditEventList": page{},
	})
}
