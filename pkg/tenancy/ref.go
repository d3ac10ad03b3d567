package tenancy

import "github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"

// Ref names a User, an Org, a Workspace, a Session, an Invitation or the Global catalog. A caller that waits for memory to follow a
// write names what it waits for by Refs.
type Ref struct {
	kind refKind
	name string
}

type refKind uint8

const (
	refUser refKind = iota + 1
	refOrg
	refWorkspace
	refSession
	refCatalog
	refInvitation
)

// UserRef is the Ref of a User by metadata.name. It stands for their Memberships and
// bindings, too.
func UserRef(name string) Ref { return Ref{refUser, name} }

// OrgRef is the Ref of an Org by UUID. It stands for everything in the Org, too.
func OrgRef(uuid string) Ref { return Ref{refOrg, uuid} }

// WorkspaceRef is the Ref of a Workspace by UUID. It stands for everything in the
// Workspace and for its Org's own facts, too.
func WorkspaceRef(uuid string) Ref { return Ref{refWorkspace, uuid} }

// SessionRef is the Ref of a Session by metadata.name.
func SessionRef(name string) Ref { return Ref{refSession, name} }

// InvitationRef is the Ref of an Invitation by metadata.name.
func InvitationRef(name string) Ref { return Ref{refInvitation, name} }

// CatalogRef is the Ref of the Global catalog.
func CatalogRef() Ref { return Ref{kind: refCatalog} }

// RefsOfRights returns what a User's rights depend on: the User, and every Org that a row
// of their index names.
func RefsOfRights(user string, index []v1alpha1.MembershipIndexEntry) []Ref {
	refs := []Ref{UserRef(user)}
	for _, row := range index {
		if ref := OrgRef(row.OrgUUID); refs[len(refs)-1] != ref {
			refs = append(refs, ref)
		}
	}
	return refs
}
