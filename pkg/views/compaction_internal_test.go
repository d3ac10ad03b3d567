package views

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	conditionsv1alpha1 "github.com/kcp-dev/sdk/apis/third_party/conditions/apis/conditions/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// What a tenant writes into the metadata of a binding takes little of the memory of all.
func TestCompactBinding_keepsLittleOfWhatTenantsWrite(t *testing.T) {
	t.Parallel()
	binding := func(note string) *kcpapisv1alpha2.APIBinding {
		b := &kcpapisv1alpha2.APIBinding{ObjectMeta: metav1.ObjectMeta{
			Name: "widgets", UID: "u", ResourceVersion: "7", Labels: map[string]string{"team": "x"},
			Annotations: map[string]string{
				logicalcluster.AnnotationKey: "c-w", v1alpha1.CatalogEntryAnnotation: "{}",
				corev1.LastAppliedConfigAnnotation: "{}", "note": note,
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		}}
		b.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: "root:p", Name: "widgets"}
		b.Status.Phase = kcpapisv1alpha2.APIBindingPhaseBound
		b.Status.BoundResources = []kcpapisv1alpha2.BoundAPIResource{{Group: "example.com", Resource: "widgets", StorageVersions: []string{"v1"}}}
		b.Status.Conditions = conditionsv1alpha1.Conditions{{
			Type: kcpapisv1alpha2.APIExportValid, Status: corev1.ConditionFalse, Message: strings.Repeat("x", 1000),
		}}
		return b
	}
	small, large := binding("short"), binding(strings.Repeat("x", 64<<10))
	want := small.DeepCopy()
	want.ManagedFields = nil
	delete(want.Annotations, corev1.LastAppliedConfigAnnotation)
	want.Status.Conditions[0].Message = strings.Repeat("x", keptMessage)
	compactBinding(small)
	require.Equal(t, want, small)
	want.Labels = nil
	delete(want.Annotations, "note")
	compactBinding(large)
	require.Equal(t, want, large)
}

// What a replica keeps of a Workspace is bounded: as many roles and bindings as the limits let in, with as much
// in them as the admission policy and the transforms keep.
func TestCompaction_boundsAWorkspace(t *testing.T) {
	t.Parallel()
	if !Alone(t) {
		return
	}
	const roles, bindings, claims, claimsText = 300, 100, 64, 12 << 10
	text := func(prefix string, n, length int) string {
		return (fmt.Sprint(prefix, n) + strings.Repeat("x", length))[:length]
	}
	var held []any
	before := LiveHeap()
	for n := range roles {
		r := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{
			Name: text("role", n, 253), Namespace: text("space", n, 63), UID: types.UID(text("u", n, 36)), ResourceVersion: "1234567890",
			Labels: map[string]string{"a": text("l", n, 63)}, Annotations: map[string]string{logicalcluster.AnnotationKey: "c-w", "a": text("a", n, 4<<10)},
		}}
		for rules := r.Rules; tenancy.EncodeRules(rules) != ""; {
			r.Rules = rules
			rules = append(slices.Clone(rules), rbacv1.PolicyRule{
				APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"},
				ResourceNames: []string{text(fmt.Sprint(n, "-"), len(rules), 100)},
			})
		}
		compactRole(r)
		held = append(held, r)
	}
	for n := range bindings {
		b := &kcpapisv1alpha2.APIBinding{ObjectMeta: metav1.ObjectMeta{
			Name: text("binding", n, 253), UID: types.UID(text("u", n, 36)), ResourceVersion: "1234567890",
			Labels: map[string]string{"a": text("l", n, 63)}, Annotations: map[string]string{logicalcluster.AnnotationKey: "c-w", "a": text("a", n, 4<<10)},
		}}
		for c := range claims {
			claim := kcpapisv1alpha2.AcceptablePermissionClaim{State: kcpapisv1alpha2.ClaimRejected}
			claim.Resource = text(fmt.Sprint("r", n, "-"), c, claimsText/claims)
			b.Spec.PermissionClaims = append(b.Spec.PermissionClaims, claim)
			// As decoded from JSON, each has its own memory.
			claim.Resource = strings.Clone(claim.Resource)
			b.Status.AppliedPermissionClaims = append(b.Status.AppliedPermissionClaims, claim.ScopedPermissionClaim)
			claim.Resource = strings.Clone(claim.Resource)
			b.Status.ExportPermissionClaims = append(b.Status.ExportPermissionClaims, claim.PermissionClaim)
		}
		compactBinding(b)
		held = append(held, b)
	}
	taken := LiveHeap() - before
	t.Logf("%d KiB", taken>>10)
	require.LessOrEqual(t, taken, int64(6<<20))
	require.Greater(t, taken, int64(2<<20), "the control: it is measured")
	runtime.KeepAlive(held)
}

// Alone runs the test again in a process of its own, and returns true there: what a test before left running
// would allocate during a measurement of the heap. The log of that process is part of the test's.
func Alone(t *testing.T) bool {
	t.Helper()
	const child = "KEDGE_TEST_ALONE"
	if os.Getenv(child) != "" {
		return true
	}
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	require.Contains(t, string(out), "--- PASS: "+t.Name()+" ")
	return false
}

// LiveHeap returns the memory that is in use, in bytes. It collects garbage until a collection frees next to
// nothing: the second one empties sync.Pools, and with the race detector some frees what the one before let go of.
func LiveHeap() int64 {
	const nothing = 4 << 10
	var m runtime.MemStats
	for last := int64(math.MaxInt64); ; last = int64(m.HeapAlloc) {
		runtime.GC()
		runtime.GC()
		if runtime.ReadMemStats(&m); last-int64(m.HeapAlloc) < nothing {
			return int64(m.HeapAlloc)
		}
	}
}
