package tenancy_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

var (
	tenant = &user.DefaultInfo{Name: "oidc:alice", Groups: []string{"devs", "system:authenticated"}}
	hub    = &user.DefaultInfo{Name: "kcp-admin", Groups: []string{"system:kcp:admin", "system:authenticated"}}
)

// write is a request to kcp: old alone is a DELETE, both are an UPDATE.
type write struct {
	resource, old, new string
	subresource        string
	// namespace is that of the request; empty means default.
	namespace string
	by        user.Info
}

func newPolicy(t testing.TB) tenancy.Policy {
	t.Helper()
	p, err := tenancy.NewPolicy("kcp-admin", "shard-admin")
	require.NoError(t, err)
	return p
}

// refusals evaluates the policy as kcp does and returns the messages of the validations
// that refuse the write.
func refusals(t testing.TB, v validating.Validator, w write) (messages []string) {
	t.Helper()
	gvr, _ := schema.ParseResourceArg(w.resource)
	require.NotNil(t, gvr, w.resource)
	object := func(text string) runtime.Object {
		if text == "" {
			return nil
		}
		o := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &o.Object))
		o.SetAPIVersion(gvr.GroupVersion().String())
		o.SetKind("Any")
		return o
	}
	operation := admission.Update
	switch {
	case w.old == "":
		operation = admission.Create
	case w.new == "":
		operation = admission.Delete
	}
	by := w.by
	if by == nil {
		by = tenant
	}
	kind, before, after := gvr.GroupVersion().WithKind("Any"), object(w.old), object(w.new)
	result := v.Validate(t.Context(), *gvr, &admission.VersionedAttributes{
		Attributes:         admission.NewAttributesRecord(after, before, kind, cmp.Or(w.namespace, "default"), "", *gvr, w.subresource, operation, nil, false, by),
		VersionedOldObject: before, VersionedObject: after, VersionedKind: kind,
	}, nil, nil, celconfig.RuntimeCELCostBudget, nil)
	for _, d := range result.Decisions {
		require.NotEqual(t, validating.EvalError, d.Evaluation, d.Message)
		if d.Action == validating.ActionDeny {
			require.Equal(t, metav1.StatusReasonForbidden, d.Reason)
			messages = append(messages, d.Message)
		}
	}
	return messages
}

func compiled(t testing.TB, p tenancy.Policy) validating.Validator {
	t.Helper()
	v := validating.CompilePolicy(p.Policy)
	require.NoError(t, v.CompileError())
	return v
}

const (
	bindings        = "rolebindings.v1.rbac.authorization.k8s.io"
	clusterBindings = "clusterrolebindings.v1.rbac.authorization.k8s.io"
	secrets         = "secrets.v1."
	crds            = "customresourcedefinitions.v1.apiextensions.k8s.io"
	clusterRoles    = "clusterroles.v1.rbac.authorization.k8s.io"
	namespacedRoles = "roles.v1.rbac.authorization.k8s.io"
	schemas         = "apiresourceschemas.v1alpha1.apis.kcp.io"
	apiBindings     = "apibindings.v1alpha2.apis.kcp.io"
	apiExports      = "apiexports.v1alpha2.apis.kcp.io"
	serviceAccounts = "serviceaccounts.v1."

	botSubject = "{kind: ServiceAccount, name: " + botWorkspace + ", namespace: default}"

	plain   = "metadata: {name: mine}"
	labeled = "metadata: {name: mine, labels: {tenancy.kedge.faros.sh/managed-by: kedge-hub}}"
	access  = "{metadata: {name: a}, spec: {reference: {export: {path: 'root:kedge:providers', name: access.kedge.faros.sh}}}}"
	kcps    = "{metadata: {name: a}, spec: {reference: {export: {path: root, name: tenancy.kcp.io}}}}"
	token   = "{metadata: {name: t}, type: kubernetes.io/service-account-token}"
	tokenOf = "{metadata: {name: ci}, spec: {boundObjectRef: {kind: Secret, name: %s}}}"
	webhook = "{metadata: {name: c}, spec: {group: x.example.com, conversion: {strategy: Webhook}}}"
	// unserved hides what is stored from the meter.
	unserved = "{metadata: {name: c}, spec: {group: x.example.com, versions: [{name: v1, served: false, storage: true}]}}"
)

func ruled(yaml string) string { return "{metadata: {name: r}, rules: [" + yaml + "]}" }

func roleRef(name string) string {
	return "{metadata: {name: b}, roleRef: {kind: ClusterRole, name: '" + name + "'}, subjects: [{kind: ServiceAccount, name: a, namespace: default}]}"
}

func grouped(group string) string { return "{metadata: {name: s}, spec: {group: '" + group + "'}}" }

func column(path string) string {
	return `{metadata: {name: c}, spec: {group: x.example.com, versions: [{served: true}, {served: true, additionalPrinterColumns: ` +
		`[{name: A, type: string, jsonPath: .spec.a}, {name: B, type: string, jsonPath: "` + path + `"}]}]}}`
}

// manyColumns is a path for column that adds more columns than a version can have.
func manyColumns() string {
	return strings.Repeat(`.a"}, {jsonPath: "`, tenancy.MaxColumns) + ".a"
}

// claim is a permission claim with a comma.
const claim = "{resource: configmaps, verbs: [get]}, "

func claiming(yaml string) string {
	return "{metadata: {name: a}, spec: {reference: {export: {path: 'root:x', name: widgets}}, permissionClaims: [" + yaml + "]}}"
}

func annotated(key string, length int) string {
	return "{metadata: {name: a, annotations: {" + key + ": '" + strings.Repeat("a", length) + "'}}}"
}

func subject(yaml string) string { return "{metadata: {name: b}, subjects: [" + yaml + "]}" }

func TestPolicy_refusesTenantsWhatIsNotTheirs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write
		says string
	}{
		"a binding to a person":                  {write{resource: bindings, new: subject("{kind: User, name: bob}")}, "through Memberships"},
		"a cluster-wide binding to a person":     {write{resource: clusterBindings, new: subject("{kind: User, name: bob}")}, "through Memberships"},
		"a binding to oneself":                   {write{resource: clusterBindings, new: subject("{kind: User, name: 'oidc:alice'}")}, "through Memberships"},
		"a binding to a group":                   {write{resource: bindings, new: subject("{kind: Group, name: devs}")}, "through Memberships"},
		"a binding to everybody":                 {write{resource: bindings, new: subject("{kind: Group, name: 'system:authenticated'}")}, "through Memberships"},
		"a binding to a group that looks right":  {write{resource: bindings, new: subject("{kind: Group, name: 'system:serviceaccountsx'}")}, "through Memberships"},
		"a binding to a foreign ServiceAccount":  {write{resource: bindings, new: subject("{kind: User, name: 'system:kcp:serviceaccount:x:default:a'}")}, "through Memberships"},
		"an accomplice beside a ServiceAccount":  {write{resource: bindings, new: subject("{kind: ServiceAccount, name: a, namespace: default}, {kind: User, name: bob}")}, "through Memberships"},
		"an update that adds a person":           {write{resource: bindings, old: subject(""), new: subject("{kind: User, name: bob}")}, "through Memberships"},
		"an update that keeps a person":          {write{resource: bindings, old: subject("{kind: User, name: bob}"), new: subject("{kind: User, name: bob}")}, "through Memberships"},
		"a binding of a bot":                     {write{resource: bindings, new: subject(botSubject)}, "includes bots"},
		"a cluster-wide binding of a bot":        {write{resource: clusterBindings, new: subject(botSubject)}, "includes bots"},
		"a bot of the binding's namespace":       {write{resource: bindings, new: subject("{kind: ServiceAccount, name: " + botWorkspace + "}")}, "includes bots"},
		"a bot with an empty namespace":          {write{resource: bindings, new: subject("{kind: ServiceAccount, name: " + botWorkspace + ", namespace: ''}")}, "includes bots"},
		"a bot bound from another namespace":     {write{resource: bindings, namespace: "ci", new: subject(botSubject)}, "includes bots"},
		"a bot beside an account of theirs":      {write{resource: bindings, new: subject("{kind: ServiceAccount, name: a, namespace: default}, " + botSubject)}, "includes bots"},
		"an update that adds a bot":              {write{resource: clusterBindings, old: subject(""), new: subject(botSubject)}, "includes bots"},
		"an update that keeps a bot":             {write{resource: clusterBindings, old: subject(botSubject), new: subject(botSubject)}, "includes bots"},
		"a binding of all ServiceAccounts":       {write{resource: bindings, new: subject("{kind: Group, name: 'system:serviceaccounts'}")}, "includes bots"},
		"a binding of those of default":          {write{resource: clusterBindings, new: subject("{kind: Group, name: 'system:serviceaccounts:default'}")}, "includes bots"},
		"a binding of a bot as a User":           {write{resource: bindings, new: subject("{kind: User, name: 'system:serviceaccount:default:" + botWorkspace + "'}")}, "through Memberships"},
		"an account with the name of a bot":      {write{resource: serviceAccounts, new: "metadata: {name: " + botWorkspace + "}"}, "belong to bots"},
		"an APIBinding with 65 claims":           {write{resource: apiBindings, new: claiming(strings.Repeat("{resource: configmaps, verbs: [get], state: Rejected}, ", 65))}, "at most 64"},
		"an APIBinding with a long claim":        {write{resource: apiBindings, new: claiming(strings.Replace(claim, "configmaps", strings.Repeat("a", 12<<10), 1))}, "at most 64"},
		"an APIExport with 65 claims":            {write{resource: apiExports, new: claiming(strings.Repeat(claim, 65))}, "at most 64"},
		"an APIBinding with a long annotation":   {write{resource: apiBindings, new: annotated("a", 4097)}, "no annotation of more"},
		"an older one with a long annotation":    {write{resource: "apibindings.v1alpha1.apis.kcp.io", new: annotated("a", 4097)}, "no annotation of more"},
		"the hub's annotation, very long":        {write{resource: apiBindings, new: annotated(v1alpha1.CatalogEntryAnnotation, 25<<10)}, "no annotation of more"},
		"an APIExport with virtual storage":      {write{resource: apiExports, new: "{metadata: {name: a}, spec: {resources: [{name: a, storage: {crd: {}}}, {name: b, storage: {virtual: {}}}]}}"}, "virtual storage"},
		"virtual storage by kcp's annotation":    {write{resource: "apiexports.v1alpha1.apis.kcp.io", new: "{metadata: {name: a, annotations: {apis.v1alpha2.kcp.io/resource-schemas: '[]'}}}"}, "virtual storage"},
		"a reserved name":                        {write{resource: clusterBindings, new: "metadata: {name: 'kedge:workspace:mine'}"}, "the hub keeps"},
		"a generated reserved name":              {write{resource: clusterBindings, new: "metadata: {generateName: 'kedge:'}"}, "the hub keeps"},
		"an update of the hub's":                 {write{resource: clusterBindings, old: "metadata: {name: 'kedge:x'}", new: "metadata: {name: 'kedge:x', finalizers: [a/b]}"}, "the hub keeps"},
		"a removal of the hub's":                 {write{resource: clusterBindings, old: "metadata: {name: 'kedge:x'}"}, "the hub keeps"},
		"a label of the hub":                     {write{resource: "configmaps.v1.", new: labeled}, "the hub keeps"},
		"a label put on":                         {write{resource: "namespaces.v1.", old: plain, new: labeled}, "the hub keeps"},
		"a label taken off":                      {write{resource: "namespaces.v1.", old: labeled, new: plain}, "the hub keeps"},
		"a token bound to the Secret of a bot":   {write{resource: "serviceaccounts.v1.", subresource: "token", new: fmt.Sprintf(tokenOf, "kedge-bot-token-1")}, "belong to a bot"},
		"an update of what is labeled":           {write{resource: "serviceaccounts.v1.", old: labeled, new: labeled}, "the hub keeps"},
		"a removal of what is labeled":           {write{resource: "namespaces.v1.", old: labeled}, "the hub keeps"},
		"a custom resource with a label":         {write{resource: "widgets.v1.example.com", new: labeled}, "the hub keeps"},
		"a token that never expires":             {write{resource: secrets, new: token}, "kubectl create token"},
		"a change of such a token":               {write{resource: secrets, old: token, new: token}, "kubectl create token"},
		"a conversion webhook":                   {write{resource: crds, new: webhook}, "conversion webhooks"},
		"a conversion webhook put in":            {write{resource: crds, old: plain, new: webhook}, "conversion webhooks"},
		"a schema with a conversion webhook":     {write{resource: schemas, new: webhook}, "conversion webhooks"},
		"a definition that nothing serves":       {write{resource: crds, new: unserved}, "at least one version"},
		"a definition that ceases to be served":  {write{resource: crds, old: plain, new: unserved}, "at least one version"},
		"a schema that nothing serves":           {write{resource: schemas, new: unserved}, "at least one version"},
		"a schema in the group of RBAC":          {write{resource: schemas, new: grouped("rbac.authorization.k8s.io")}, "belongs to kcp"},
		"a schema in the core group":             {write{resource: schemas, new: grouped("")}, "belongs to kcp"},
		"a schema without a group":               {write{resource: schemas, new: plain}, "belongs to kcp"},
		"a schema in a group of kcp":             {write{resource: schemas, new: grouped("topology.kcp.io")}, "belongs to kcp"},
		"a schema in the group of the hub":       {write{resource: schemas, new: grouped("tenancy.kedge.faros.sh")}, "belongs to kcp"},
		"a definition in the group of RBAC":      {write{resource: crds, new: grouped("rbac.authorization.k8s.io")}, "belongs to kcp"},
		"a definition in the core group":         {write{resource: crds, new: grouped("")}, "belongs to kcp"},
		"a definition without a group":           {write{resource: crds, new: plain}, "belongs to kcp"},
		"a definition in a group of kcp":         {write{resource: crds, new: grouped("core.kcp.io")}, "belongs to kcp"},
		"a definition in the group of the hub":   {write{resource: crds, new: grouped("tenancy.kedge.faros.sh")}, "belongs to kcp"},
		"a change of such a definition":          {write{resource: crds, old: grouped("tenancy.kcp.io"), new: grouped("tenancy.kcp.io")}, "belongs to kcp"},
		"a column that descends":                 {write{resource: crds, new: column(".a..a..a..a..a")}, "jsonPath"},
		"a column of a field named twice":        {write{resource: crds, new: column(".a['a','a']['a','a']")}, "jsonPath"},
		"a column of two paths":                  {write{resource: crds, new: column(".a}{.b")}, "jsonPath"},
		"a schema with a column that descends":   {write{resource: schemas, new: column("..a")}, "jsonPath"},
		"a column of a key that descends":        {write{resource: crds, new: column(".a['.a']['.a']['.a']")}, "jsonPath"},
		"many columns":                           {write{resource: crds, new: column(manyColumns())}, "columns"},
		"a column that descends put in":          {write{resource: crds, old: column(".a"), new: column(".a..b")}, "jsonPath"},
		"a role with all rights":                 {write{resource: clusterRoles, new: ruled("{apiGroups: ['*'], resources: ['*'], verbs: ['*']}")}, "at most the rights"},
		"a role that changes admission":          {write{resource: clusterRoles, new: ruled("{apiGroups: [admissionregistration.k8s.io], resources: [validatingadmissionpolicies], verbs: [delete]}")}, "at most the rights"},
		"a role that impersonates":               {write{resource: namespacedRoles, new: ruled("{apiGroups: [''], resources: [serviceaccounts], verbs: [impersonate]}")}, "at most the rights"},
		"a role that escalates":                  {write{resource: namespacedRoles, new: ruled("{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate]}")}, "at most the rights"},
		"a role for all of the core group":       {write{resource: namespacedRoles, new: ruled("{apiGroups: [''], resources: ['*'], verbs: [get]}")}, "at most the rights"},
		"a role that updates applied claims":     {write{resource: clusterRoles, new: ruled("{apiGroups: [apis.kcp.io], resources: [apibindings/status], verbs: [update]}")}, "at most the rights"},
		"a role for another group of kcp":        {write{resource: clusterRoles, new: ruled("{apiGroups: [topology.kcp.io], resources: [partitions], verbs: [get]}")}, "at most the rights"},
		"a role for the metrics of kcp":          {write{resource: clusterRoles, new: ruled("{nonResourceURLs: [/metrics], verbs: [get]}")}, "at most the rights"},
		"a rule after one that is permitted":     {write{resource: clusterRoles, old: plain, new: ruled("{apiGroups: [''], resources: [configmaps], verbs: [get]}, {apiGroups: ['*'], resources: [a], verbs: [get]}")}, "at most the rights"},
		"a role of all others' rules":            {write{resource: clusterRoles, new: "{metadata: {name: r}, rules: null, aggregationRule: {clusterRoleSelectors: [{}]}}"}, "not aggregated"},
		"a binding of kcp's admin role":          {write{resource: clusterBindings, new: roleRef("cluster-admin")}, "of kcp has rights"},
		"a binding of another role of kcp":       {write{resource: bindings, new: roleRef("system:kcp:logical-cluster-admin")}, "of kcp has rights"},
		"a claim on admission":                   {write{resource: apiBindings, new: claiming("{group: admissionregistration.k8s.io, resource: validatingadmissionpolicies, verbs: ['*'], state: Accepted}")}, "reject that claim"},
		"a claim on the LogicalCluster":          {write{resource: apiBindings, new: claiming("{group: core.kcp.io, resource: logicalclusters, verbs: [get, patch], state: Accepted}")}, "reject that claim"},
		"a claim on quotas":                      {write{resource: apiBindings, new: claiming("{resource: resourcequotas, verbs: [create], state: Accepted}")}, "reject that claim"},
		"a claim in the older version":           {write{resource: "apibindings.v1alpha1.apis.kcp.io", new: claiming("{resource: resourcequotas, all: true, state: Accepted}")}, "reject that claim"},
		"a claim without a state":                {write{resource: apiBindings, new: claiming("{group: core.kcp.io, resource: logicalclusters, verbs: ['*']}")}, "reject that claim"},
		"kcp's tenancy API":                      {write{resource: apiBindings, new: kcps}, "cannot be bound"},
		"kcp's tenancy API in the older version": {write{resource: "apibindings.v1alpha1.apis.kcp.io", new: kcps}, "cannot be bound"},
		"kcp's topology API":                     {write{resource: apiBindings, new: "{metadata: {name: a}, spec: {reference: {export: {name: topology.kcp.io}}}}"}, "cannot be bound"},
		"the hub's tenancy API":                  {write{resource: apiBindings, new: "{metadata: {name: a}, spec: {reference: {export: {name: tenancy.kedge.faros.sh}}}}"}, "cannot be bound"},
		"a second binding of the access export":  {write{resource: apiBindings, new: access}, "cannot be bound"},
		"claims taken from the access binding":   {write{resource: apiBindings, old: access, new: access}, "leave it as it is"},
		"the access binding pointed elsewhere":   {write{resource: apiBindings, old: access, new: plain}, "leave it as it is"},
		"a removal of the access binding":        {write{resource: apiBindings, old: access}, "leave it as it is"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := compiled(t, newPolicy(t))
			messages := refusals(t, v, c.write)
			require.NotEmpty(t, messages)
			require.Contains(t, strings.Join(messages, "\n"), c.says)
			for _, trusted := range []user.Info{hub, &user.DefaultInfo{Name: "system:apiserver", Groups: []string{"system:masters"}}, &user.DefaultInfo{Name: "shard-admin"}} {
				c.by = trusted
				require.Empty(t, refusals(t, v, c.write), "of %s", trusted.GetName())
			}
		})
	}
}

func TestPolicy_letsTenantsDoTheirWork(t *testing.T) {
	t.Parallel()
	const (
		oldVersion = "{spec: {group: example.com, versions: [{name: v1, served: false}, {name: v2, served: true}]}}"
		removed    = "{metadata: {name: c, deletionTimestamp: x, finalizers: [a/b]}, spec: {group: core.kcp.io}}"
	)
	for name, w := range map[string]write{
		"a binding to a ServiceAccount":             {resource: bindings, new: subject("{kind: ServiceAccount, name: a, namespace: default}")},
		"a binding to an account of the namespace":  {resource: bindings, new: subject("{kind: ServiceAccount, name: a}")},
		"a binding to a UUID in another namespace":  {resource: bindings, new: subject("{kind: ServiceAccount, name: " + botWorkspace + ", namespace: ci}")},
		"a binding to a UUID of its namespace":      {resource: bindings, namespace: "ci", new: subject("{kind: ServiceAccount, name: " + botWorkspace + "}")},
		"a binding to a name like a UUID":           {resource: bindings, new: subject("{kind: ServiceAccount, name: x" + botWorkspace[1:] + ", namespace: default}")},
		"a binding to those of a namespace":         {resource: clusterBindings, new: subject("{kind: Group, name: 'system:serviceaccounts:ci'}")},
		"a bot taken out of a binding":              {resource: clusterBindings, old: subject(botSubject), new: subject("")},
		"a binding of a bot removed":                {resource: clusterBindings, old: subject(botSubject)},
		"an account with a UUID elsewhere":          {resource: serviceAccounts, namespace: "ci", new: "metadata: {name: " + botWorkspace + "}"},
		"a change of an account with a UUID":        {resource: serviceAccounts, old: "metadata: {name: " + botWorkspace + "}", new: "metadata: {name: " + botWorkspace + "}"},
		"an account with a UUID removed":            {resource: serviceAccounts, old: "metadata: {name: " + botWorkspace + "}"},
		"a token of a bot's account":                {resource: serviceAccounts, subresource: "token", new: "{metadata: {name: " + botWorkspace + "}, spec: {expirationSeconds: 600}}"},
		"an account with a generated name":          {resource: serviceAccounts, new: "metadata: {generateName: a-}"},
		"an APIBinding with 64 claims":              {resource: apiBindings, new: claiming(strings.Repeat("{resource: configmaps, verbs: [get], state: Rejected}, ", 64))},
		"an APIBinding with an annotation":          {resource: apiBindings, new: annotated("a", 4096)},
		"what the hub says about an entry":          {resource: apiBindings, new: annotated(v1alpha1.CatalogEntryAnnotation, 24<<10)},
		"a long annotation removed":                 {resource: apiBindings, old: annotated("a", 4097), new: annotated("a", 1)},
		"a long annotation of another kind":         {resource: "configmaps.v1.", new: annotated("a", 4097)},
		"an APIExport":                              {resource: apiExports, new: "{metadata: {name: a}, spec: {resources: [{name: a, storage: {crd: {}}}, {name: b}]}}"},
		"an APIExport with virtual storage removed": {resource: apiExports, old: "{metadata: {name: a}, spec: {resources: [{name: b, storage: {virtual: {}}}]}}"},
		"a binding of nobody":                       {resource: bindings, new: plain},
		"a person taken out of a binding":           {resource: bindings, old: subject("{kind: User, name: bob}"), new: subject("")},
		"a binding to a person removed":             {resource: clusterBindings, old: subject("{kind: User, name: bob}")},
		"a ClusterRole":                             {resource: "clusterroles.v1.rbac.authorization.k8s.io", new: plain},
		"a ConfigMap with data alone":               {resource: "configmaps.v1.", new: "{metadata: {name: kedgex, labels: {app: kedge}}, data: {subjects: x}}"},
		"a token bound to a Secret of theirs":       {resource: "serviceaccounts.v1.", subresource: "token", new: fmt.Sprintf(tokenOf, "mine")},
		"a token bound to nothing":                  {resource: "serviceaccounts.v1.", subresource: "token", new: "{metadata: {name: ci}, spec: {expirationSeconds: 600}}"},
		"a ServiceAccount":                          {resource: "serviceaccounts.v1.", new: plain},
		"a Secret":                                  {resource: secrets, old: plain, new: "{metadata: {name: mine}, type: Opaque}"},
		"a token that never expires removed":        {resource: secrets, old: token},
		"a definition":                              {resource: crds, new: "{metadata: {name: c}, spec: {group: example.com, conversion: {strategy: None}}}"},
		"a definition with an old version":          {resource: crds, new: oldVersion},
		"a definition in a group of kcp removed":    {resource: crds, old: grouped("core.kcp.io")},
		"a finalizer of one that is being removed":  {resource: crds, old: removed, new: grouped("core.kcp.io")},
		"a column of a condition":                   {resource: crds, new: column(".status.conditions[?(@.type=='Ready')].status")},
		"a column of all elements":                  {resource: schemas, new: column(".spec.items[*].name")},
		"a column that descends removed":            {resource: crds, old: column(".a..b"), new: column(".a")},
		"a definition that nothing serves removed":  {resource: crds, old: unserved},
		"a definition with a webhook removed":       {resource: crds, old: webhook},
		"a schema":                                  {resource: schemas, new: grouped("x.example.com")},
		"a schema removed":                          {resource: schemas, old: grouped("rbac.authorization.k8s.io")},
		"a role with rights of the admin role":      {resource: clusterRoles, new: ruled("{apiGroups: ['', events.k8s.io], resources: [events], verbs: [get, create]}, {nonResourceURLs: [/, /api/*], verbs: [get, access]}")},
		"a role for an API of theirs":               {resource: namespacedRoles, new: ruled("{apiGroups: [example.com], resources: ['*'], verbs: ['*', use]}")},
		"a role with null rules":                    {resource: namespacedRoles, new: "{metadata: {name: r}, rules: null}"},
		"a role with all rights removed":            {resource: clusterRoles, old: ruled("{apiGroups: ['*'], resources: ['*'], verbs: ['*']}")},
		"a binding of a role of the hub":            {resource: clusterBindings, new: roleRef("kedge:workspace:admin")},
		"a binding of kcp's admin role removed":     {resource: clusterBindings, old: roleRef("cluster-admin")},
		"a claim that is rejected":                  {resource: apiBindings, new: claiming("{group: core.kcp.io, resource: logicalclusters, verbs: ['*'], state: Rejected}")},
		"a claim that only reads":                   {resource: apiBindings, new: claiming("{group: core.kcp.io, resource: logicalclusters, verbs: [get, list, watch], state: Accepted}")},
		"claims on what the admin role changes":     {resource: apiBindings, new: claiming("{resource: secrets, verbs: ['*'], state: Accepted}, {group: rbac.authorization.k8s.io, resource: roles, verbs: ['*'], state: Accepted}, {group: authorization.k8s.io, resource: subjectaccessreviews, verbs: [create], state: Accepted}")},
		"a claim on an API of another":              {resource: apiBindings, new: claiming("{group: example.com, resource: gadgets, verbs: ['*'], state: Accepted, identityHash: a}")},
		"a binding of a provider's export":          {resource: apiBindings, new: "{metadata: {name: a}, spec: {reference: {export: {path: 'root:x', name: widgets}}}}"},
		"a binding of kcp's API removed":            {resource: apiBindings, old: kcps},
		"a review without a name":                   {resource: "selfsubjectaccessreviews.v1.authorization.k8s.io", new: "spec: {}"},
		"subjects in an object of another group":    {resource: "clusterrolebindings.v1.example.com", new: subject("{kind: User, name: bob}")},
		"a type in an object of another group":      {resource: "secrets.v1.example.com", new: token},
		"a conversion in an object of another kind": {resource: "widgets.v1.example.com", new: webhook},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Empty(t, refusals(t, compiled(t, newPolicy(t)), w))
		})
	}
}

func TestPolicy_trustsNoGroupThatTenantsCanHave(t *testing.T) {
	t.Parallel()
	v := compiled(t, newPolicy(t))
	for _, u := range []user.Info{
		&user.DefaultInfo{Name: "oidc:kcp-admin"},
		&user.DefaultInfo{Name: "kcp-admin2"},
		&user.DefaultInfo{Name: "alice", Groups: []string{"kcp-admin"}},
		&user.DefaultInfo{Name: "alice", Groups: []string{"kedge:workspace:9acbf567-a188-4c75-9c40-3c3bec1a775f:sudo", "system:authenticated"}},
		&user.DefaultInfo{Name: "system:serviceaccount:default:rest", Groups: []string{"system:serviceaccounts"}},
		&user.DefaultInfo{Name: "system:serviceaccount:kube-system:namespace-controller"},
		&user.DefaultInfo{Name: "a", Groups: []string{"system:kcp:admin"}},
		&user.DefaultInfo{},
	} {
		require.NotEmpty(t, refusals(t, v, write{resource: bindings, new: subject("{kind: User, name: bob}"), by: u}), u.GetName())
	}
}

func TestPolicy_isProbedByItsHash(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	other, err := tenancy.NewPolicy("somebody-else", "kcp-admin")
	require.NoError(t, err)
	require.NotEqual(t, p.Hash, other.Hash)
	probe := write{resource: clusterBindings, new: "metadata: {name: '" + p.Probe().Name + "'}", by: hub}
	messages := refusals(t, compiled(t, p), probe)
	require.Len(t, messages, 1)
	require.True(t, p.RefusedProbe("denied request: "+messages[0]))
	require.False(t, other.RefusedProbe(messages[0]))
	require.Empty(t, refusals(t, compiled(t, other), probe), "another version lets the probe pass")

	same, err := tenancy.NewPolicy("shard-admin", "kcp-admin", "shard-admin")
	require.NoError(t, err)
	require.Equal(t, p, same, "the order of names does not matter")
}

func TestPolicy_knowsWhetherItIsInPlace(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	require.True(t, p.InPlace(tenancy.PolicyHash(p.Policy), tenancy.PolicyBindingHash(p.Binding)))
	require.False(t, p.InPlace("", ""))

	altered := p.Policy.DeepCopy()
	altered.Spec.Validations = altered.Spec.Validations[1:]
	require.False(t, p.InPlace(tenancy.PolicyHash(altered), tenancy.PolicyBindingHash(p.Binding)))
	audit := p.Binding.DeepCopy()
	audit.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Audit}
	require.False(t, p.InPlace(tenancy.PolicyHash(p.Policy), tenancy.PolicyBindingHash(audit)))
	unlabeled := p.Policy.DeepCopy()
	unlabeled.Labels = nil
	require.False(t, p.InPlace(tenancy.PolicyHash(unlabeled), tenancy.PolicyBindingHash(p.Binding)))
}

func TestPolicy_wantsNamesOfTheHub(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{nil, {""}, {"kcp-admin", ""}} {
		_, err := tenancy.NewPolicy(names...)
		require.Error(t, err)
	}
	p, err := tenancy.NewPolicy(`it's\`)
	require.NoError(t, err)
	require.Empty(t, refusals(t, compiled(t, p), write{resource: crds, new: webhook, by: &user.DefaultInfo{Name: `it's\`}}))
	require.NotEmpty(t, refusals(t, compiled(t, p), write{resource: crds, new: webhook, by: hub}))
}

func TestPolicy_isCheapForTheBiggestObjects(t *testing.T) {
	t.Parallel()
	for _, each := range []string{
		"{kind: Group, name: 'system:serviceaccounts:ci'},",
		"{kind: ServiceAccount, namespace: default, name: " + strings.Repeat("a", 36) + "},",
	} {
		subjects := strings.Repeat(each, 5000)
		require.Empty(t, refusals(t, compiled(t, newPolicy(t)), write{resource: bindings, old: subject(subjects), new: subject(subjects)}))
	}
	columns := `{spec: {group: x.example.com, versions: [` + strings.Repeat(`{served: true, additionalPrinterColumns: [`+
		strings.Repeat("{jsonPath: ."+strings.Repeat("a", 200)+"}, ", tenancy.MaxColumns)+`]}, `, 20) + `]}}`
	require.Empty(t, refusals(t, compiled(t, newPolicy(t)), write{resource: crds, new: columns}))
	annotations := ""
	for i := range 60 {
		annotations += fmt.Sprintf("a%d: '%s', ", i, strings.Repeat("a", 4096))
	}
	require.Empty(t, refusals(t, compiled(t, newPolicy(t)), write{resource: apiBindings, new: "{metadata: {name: a, annotations: {" + annotations + "}}}"}))
}

func TestPolicy_guardsTheKindsOfItsRules(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	for kind, guarded := range map[string]bool{
		"/namespaces": true, "/secrets": true, "/serviceaccounts": true, "/configmaps": false, "/events": false,
		"rbac.authorization.k8s.io/roles": true, "rbac.authorization.k8s.io/rolebindings": true,
		"rbac.authorization.k8s.io/clusterroles": true, "rbac.authorization.k8s.io/clusterrolebindings": true,
		"apiextensions.k8s.io/customresourcedefinitions": true,
		"apis.kcp.io/apibindings":                        true, "apis.kcp.io/apiexports": true, "apis.kcp.io/apiresourceschemas": true,
		"apis.kcp.io/apiconversions": false, "example.com/secrets": false, "example.com/rolebindings": false, "/": false,
	} {
		group, resource, _ := strings.Cut(kind, "/")
		require.Equal(t, guarded, p.Guards(group, resource), kind)
	}
}
