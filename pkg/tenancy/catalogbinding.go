package tenancy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/kcp-dev/logicalcluster/v3"
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// CatalogExportOf is what status.export of a CatalogEntry says about an APIExport.
func CatalogExportOf(export *kcpapisv1alpha2.APIExport) v1alpha1.CatalogExport {
	e := v1alpha1.CatalogExport{
		ClusterID: export.Annotations[logicalcluster.AnnotationKey], IdentityHash: export.Status.IdentityHash,
	}
	for _, r := range export.Spec.Resources {
		e.Resources = append(e.Resources, v1alpha1.CatalogResource{Group: r.Group, Resource: r.Name})
	}
	e.Claims = catalogClaims(export.Spec.PermissionClaims)
	return e
}

// ExportIn is what is known of the export of an APIBinding, which is nil if there is none: the
// binding has the newest claims, and the resources of an export that no entry knows.
func ExportIn(known *v1alpha1.CatalogExport, b *kcpapisv1alpha2.APIBinding) *v1alpha1.CatalogExport {
	if b == nil || b.Status.Phase != kcpapisv1alpha2.APIBindingPhaseBound {
		return known
	}
	e := &v1alpha1.CatalogExport{}
	if known != nil {
		*e = *known
	} else {
		e.Resources = BoundBy(b)
	}
	e.Claims = catalogClaims(b.Status.ExportPermissionClaims)
	return e
}

// BoundBy are the resources that an APIBinding brings into its Workspace. It has them in every phase: kcp binds again
// what it has bound after each change.
func BoundBy(b *kcpapisv1alpha2.APIBinding) (all []v1alpha1.CatalogResource) {
	for _, r := range b.Status.BoundResources {
		all = append(all, v1alpha1.CatalogResource{Group: r.Group, Resource: r.Resource})
	}
	return all
}

// ExportOf is the APIExport that an APIBinding names.
func ExportOf(b *kcpapisv1alpha2.APIBinding) v1alpha1.APIExportRef {
	if b.Spec.Reference.Export == nil {
		return v1alpha1.APIExportRef{}
	}
	return v1alpha1.APIExportRef{Path: b.Spec.Reference.Export.Path, Name: b.Spec.Reference.Export.Name}
}

func catalogClaims(claims []kcpapisv1alpha2.PermissionClaim) (all []v1alpha1.CatalogClaim) {
	for _, c := range claims {
		all = append(all, v1alpha1.CatalogClaim{
			Group: c.Group, Resource: c.Resource, IdentityHash: c.IdentityHash, Verbs: slices.Clone(c.Verbs),
			Dangerous: DangerousClaim(c.Group, c.Resource, c.Verbs, c.DefaultSelector),
		})
	}
	return all
}

// EnabledEntry is what the APIBinding of an enabled CatalogEntry says about the entry, so that
// the entry can be disabled after it was deleted. Admins of the Workspace can alter it: it
// grants nothing.
type EnabledEntry struct {
	UUID string `json:"uuid"`
	// UID is the metadata.uid of the entry. A later entry of the same slug has the same UUID.
	UID         types.UID `json:"uid,omitempty"`
	Slug        string    `json:"slug"`
	DisplayName string    `json:"displayName"`
	// MemberResources are those of the entry: its limit outlives the entry.
	MemberResources []string `json:"memberResources,omitempty"`
}

// EnabledEntryOf reads the annotation of an APIBinding. ok is false if there is none, or if it
// is not one that the hub could have written.
func EnabledEntryOf(b *kcpapisv1alpha2.APIBinding) (e EnabledEntry, ok bool) {
	raw := b.Annotations[v1alpha1.CatalogEntryAnnotation]
	if raw == "" || json.Unmarshal([]byte(raw), &e) != nil || !IsUUID(e.UUID) ||
		CheckDisplayName("displayName", e.DisplayName) != nil || !slugPattern.MatchString(e.Slug) {
		return EnabledEntry{}, false
	}
	return e, true
}

// BindingNaming finds the APIBinding that names an entry among those of a Workspace, or nil.
func BindingNaming(bindings []*kcpapisv1alpha2.APIBinding, entry string) *kcpapisv1alpha2.APIBinding {
	found, _ := first(bindings, func(b *kcpapisv1alpha2.APIBinding) bool {
		was, ok := EnabledEntryOf(b)
		return ok && was.UUID == entry
	})
	return found
}

// BindingOf finds the APIBinding of the APIExport of an entry among those of a Workspace, or nil. A binding
// can name the logical cluster of the export in place of the path. Of several, kcp serves one that is Bound;
// those that are being deleted come last.
func BindingOf(bindings []*kcpapisv1alpha2.APIBinding, entry *v1alpha1.CatalogEntry) (found *kcpapisv1alpha2.APIBinding) {
	ref, cluster := entry.Spec.APIExport, ""
	if entry.Status.Export != nil {
		cluster = entry.Status.Export.ClusterID
	}
	rank := func(b *kcpapisv1alpha2.APIBinding) int {
		switch {
		case !b.DeletionTimestamp.IsZero():
			return 0
		case b.Status.Phase != kcpapisv1alpha2.APIBindingPhaseBound:
			return 1
		}
		return 2
	}
	for _, b := range bindings {
		e := b.Spec.Reference.Export
		if !BindsExport(b, ref) && (e == nil || e.Name != ref.Name || cluster == "" || b.Status.APIExportClusterName != cluster) {
			continue
		}
		if found == nil || rank(b) > rank(found) || rank(b) == rank(found) && b.Name < found.Name {
			found = b
		}
	}
	return found
}

// Enabling is a request to enable a CatalogEntry in a Workspace.
type Enabling struct {
	Entry *v1alpha1.CatalogEntry
	// Export is the APIExport of the entry, as kcp has it.
	Export *kcpapisv1alpha2.APIExport
	// Accepted and Rejected are the answers to the permission claims.
	Accepted, Rejected []v1alpha1.CatalogResource
	// Bindings are the APIBindings of the Workspace, CustomResources the names of its
	// CustomResourceDefinitions.
	Bindings        []*kcpapisv1alpha2.APIBinding
	CustomResources []string
}

// Binding returns the APIBinding that enables the entry, and the one that it replaces, which is
// nil if there is none. changed is false if the Workspace has it already. Once the request is
// answered like this, only kcp can refuse it.
func (e Enabling) Binding() (want, held *kcpapisv1alpha2.APIBinding, changed bool, err error) {
	if err := e.check(); err != nil {
		return nil, nil, false, err
	}
	held = BindingOf(e.Bindings, e.Entry)
	if held != nil && !held.DeletionTimestamp.IsZero() {
		_, message := CatalogStateOf(nil, held)
		return nil, nil, false, errs.New(errs.Conflict, "the provider is being disabled here; enable it again when that is done ("+message+")")
	}
	if err := e.widened(held); err != nil {
		return nil, nil, false, err
	}
	if err := e.taken(held); err != nil {
		return nil, nil, false, err
	}
	if held == nil {
		want = &kcpapisv1alpha2.APIBinding{}
		want.Name = e.name()
		want.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: e.Entry.Spec.APIExport.Path, Name: e.Entry.Spec.APIExport.Name}
	} else {
		want = held.DeepCopy()
	}
	want.Spec.PermissionClaims = e.claims(want.Spec.PermissionClaims)
	record, err := json.Marshal(EnabledEntry{
		UUID: e.Entry.Name, UID: e.Entry.UID, Slug: e.Entry.Spec.Slug, DisplayName: e.Entry.Spec.DisplayName, MemberResources: e.Entry.Spec.MemberResources,
	})
	if err != nil {
		return nil, nil, false, fmt.Errorf("encode the entry: %w", err)
	}
	if want.Annotations == nil {
		want.Annotations = map[string]string{}
	}
	changed = held == nil || want.Annotations[v1alpha1.CatalogEntryAnnotation] != string(record) || !sameClaims(held.Spec.PermissionClaims, want.Spec.PermissionClaims)
	want.Annotations[v1alpha1.CatalogEntryAnnotation] = string(record)
	return want, held, changed, nil
}

// check refuses an export that is not the one that was published, and answers that do not cover
// its claims.
func (e Enabling) check() error {
	if e.Export == nil || !e.Export.DeletionTimestamp.IsZero() {
		return errs.New(errs.Conflict, "the provider has removed this API; ask who published it")
	}
	if ExportTooLarge(e.Export) {
		return errs.New(errs.Conflict, "the API of this provider has more resources and claims than the catalog stores; ask who published it")
	}
	for i := range e.Export.Spec.Resources {
		if r := &e.Export.Spec.Resources[i]; !tenantGroup(r.Group) {
			return errs.New(errs.Conflict, "the API of this provider has "+ResourceName(r.Group, r.Name)+", and that group belongs to kcp or to the hub; ask who published it")
		}
	}
	if known := e.Entry.Status.Export; known != nil && known.IdentityHash != "" && known.IdentityHash != e.Export.Status.IdentityHash {
		return errs.New(errs.Conflict, "the API of this provider was replaced by another one of the same name (its identity changed); ask who published it")
	}
	return ClaimsAnswered(CatalogExportOf(e.Export).Claims, e.Accepted, e.Rejected)
}

// widened refuses to accept a claim that asks for more than the catalog shows. A provider could
// otherwise show a harmless claim and change it before it is accepted.
func (e Enabling) widened(held *kcpapisv1alpha2.APIBinding) error {
	shown := ExportIn(e.Entry.Status.Export, held)
	if shown == nil {
		return nil
	}
	for _, now := range catalogClaims(e.Export.Spec.PermissionClaims) {
		wider := func(was v1alpha1.CatalogClaim) bool {
			return claimed(was) == claimed(now) && (was.IdentityHash != now.IdentityHash || now.Dangerous && !was.Dangerous || !allVerbs(was.Verbs, now.Verbs))
		}
		if slices.Contains(e.Accepted, claimed(now)) && slices.ContainsFunc(shown.Claims, wider) {
			return errs.New(errs.Conflict, "the provider has just changed what it asks for: "+ResourceName(now.Group, now.Resource)+
				" ("+verbsText(now.Verbs)+"); read its claims again in a minute, and repeat the request")
		}
	}
	return nil
}

// verbsText lists verbs for a message. A provider writes those of its claims as it likes, so it quotes the ones that
// would move the cursor of a terminal or hide text.
func verbsText(verbs []string) string {
	texts := make([]string, len(verbs))
	for i, verb := range verbs {
		if texts[i] = verb; strings.ContainsFunc(verb, func(r rune) bool { return !unicode.IsPrint(r) }) {
			texts[i] = strconv.Quote(verb)
		}
	}
	return strings.Join(texts, ", ")
}

// taken refuses an API with a resource that the Workspace has from elsewhere. kcp would bind the
// rest of the API and report the conflict afterwards.
func (e Enabling) taken(held *kcpapisv1alpha2.APIBinding) error {
	var causes []errs.Cause
	for _, r := range e.Export.Spec.Resources {
		name := ResourceName(r.Group, r.Name)
		if slices.Contains(e.CustomResources, r.Name+"."+r.Group) {
			causes = append(causes, errs.Cause{Type: "Conflict", Field: name, Message: "it has a CustomResourceDefinition of its own for it"})
		}
		for _, b := range e.Bindings {
			if held != nil && b.UID == held.UID {
				continue
			}
			if slices.ContainsFunc(b.Status.BoundResources, func(bound kcpapisv1alpha2.BoundAPIResource) bool {
				return bound.Group == r.Group && bound.Resource == r.Name
			}) {
				causes = append(causes, errs.Cause{Type: "Conflict", Field: name, Message: "it has it from the binding " + b.Name})
			}
		}
	}
	if len(causes) == 0 {
		return nil
	}
	return errs.New(errs.Conflict, "the workspace already has "+causes[0].Field+" from elsewhere ("+causes[0].Message+"); remove that first", causes...)
}

// name is the name of a new binding: the slug, with a number if another API has the name.
func (e Enabling) name() string {
	slug := strings.TrimRight(e.Entry.Spec.Slug, "-")
	name := slug
	for n := 2; slices.ContainsFunc(e.Bindings, func(b *kcpapisv1alpha2.APIBinding) bool { return b.Name == name }); n++ {
		name = fmt.Sprintf("%s-%d", slug, n)
	}
	return name
}

// claims are the answers to all claims of the export. A claim keeps the selector that it has,
// which kcp does not let change.
func (e Enabling) claims(held []kcpapisv1alpha2.AcceptablePermissionClaim) []kcpapisv1alpha2.AcceptablePermissionClaim {
	var answered []kcpapisv1alpha2.AcceptablePermissionClaim
	for _, c := range e.Export.Spec.PermissionClaims {
		a := kcpapisv1alpha2.AcceptablePermissionClaim{State: kcpapisv1alpha2.ClaimRejected}
		if slices.Contains(e.Accepted, v1alpha1.CatalogResource{Group: c.Group, Resource: c.Resource}) {
			a.State = kcpapisv1alpha2.ClaimAccepted
		}
		a.PermissionClaim = kcpapisv1alpha2.PermissionClaim{GroupResource: c.GroupResource, Verbs: slices.Clone(c.Verbs), IdentityHash: c.IdentityHash}
		a.Selector = kcpapisv1alpha2.PermissionClaimSelector{MatchAll: true}
		if c.DefaultSelector != nil {
			a.Selector = *c.DefaultSelector.DeepCopy()
		}
		if i := slices.IndexFunc(held, func(h kcpapisv1alpha2.AcceptablePermissionClaim) bool { return h.EqualGRI(c) }); i >= 0 {
			a.Selector = held[i].Selector
		}
		answered = append(answered, a)
	}
	return answered
}

// sameClaims reports whether two lists answer the same claims in the same way.
func sameClaims(held, want []kcpapisv1alpha2.AcceptablePermissionClaim) bool {
	return len(held) == len(want) && !slices.ContainsFunc(want, func(w kcpapisv1alpha2.AcceptablePermissionClaim) bool {
		return !slices.ContainsFunc(held, func(h kcpapisv1alpha2.AcceptablePermissionClaim) bool {
			return h.EqualGRI(w.PermissionClaim) && h.State == w.State && allVerbs(h.Verbs, w.Verbs) && allVerbs(w.Verbs, h.Verbs)
		})
	})
}

// ClaimsWithdrawn reports whether kcp has taken back what a binding does not accept but the new
// one does. kcp 0.32 hides the claimed objects before that; a claim that is accepted in between
// is no change to it, and the objects stay hidden.
func ClaimsWithdrawn(held, want *kcpapisv1alpha2.APIBinding) bool {
	var accepting []kcpapisv1alpha2.AcceptablePermissionClaim
	for _, c := range want.Spec.PermissionClaims {
		if c.State == kcpapisv1alpha2.ClaimAccepted {
			accepting = append(accepting, c)
		}
	}
	return takenBack(accepting, held)
}

// Loss is what kcp deletes of one kind when a provider is disabled.
type Loss struct {
	Group    string
	Resource string
	// Count is nil if the permission policy of the provider lets the hub not count.
	Count *int64
}

// WouldLose refuses to disable a provider before the person has confirmed what is lost.
func WouldLose(losses []Loss) error {
	var lost []string
	var causes []errs.Cause
	for _, l := range losses {
		name := ResourceName(l.Group, l.Resource)
		text := "an unknown number of " + name + " would be deleted"
		if l.Count != nil {
			text = fmt.Sprintf("%d %s would be deleted", *l.Count, name)
		}
		causes = append(causes, errs.Cause{Type: "WouldLose", Field: name, Message: text})
		if l.Count == nil || *l.Count > 0 {
			lost = append(lost, text)
		}
	}
	message := "nothing would be lost"
	if len(lost) > 0 {
		message = strings.Join(lost, ", ")
	}
	return errs.New(errs.Conflict, "disabling a provider deletes all objects of its API in the workspace: "+message+"; to go on, repeat the request with ?confirm=true", causes...)
}
