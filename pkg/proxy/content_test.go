package proxy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

const (
	rbacPath = "/clusters/aaaa/apis/rbac.authorization.k8s.io/v1"
	allRoles = rbacPath + "/clusterroles"
	aRole    = allRoles + "/r"

	post, put, patch = http.MethodPost, http.MethodPut, http.MethodPatch

	merge     = "application/merge-patch+json"
	strategic = "application/strategic-merge-patch+json"
	applied   = "application/apply-patch+yaml"
	jsonPatch = "application/json-patch+json"
	inProto   = "application/vnd.kubernetes.protobuf"
)

// reading is a kcp that keeps the bodies that it gets.
type reading struct{ bodies []string }

func (k *reading) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	k.bodies = append(k.bodies, string(body))
	return (&recorder{}).RoundTrip(r)
}

// withBody is a request with a body. Its length is not said where chunked is true.
func withBody(method, target, media, body string, chunked bool, header ...string) *http.Request {
	r := request(method, target, "alice", header...)
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	if chunked {
		r.ContentLength = -1
	}
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	return r
}

// roleOf is a role with one rule whose lists are of these lengths.
func roleOf(groups, resources, verbs int) rbacv1.ClusterRole {
	list := func(n int) (l []string) {
		for i := range n {
			l = append(l, fmt.Sprintf("x%d", i))
		}
		return l
	}
	role := rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{
		{APIGroups: list(groups), Resources: list(resources), Verbs: list(verbs)},
	}}
	role.Name = "r"
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	return role
}

func asJSON(tb testing.TB, role rbacv1.ClusterRole) string {
	tb.Helper()
	raw, err := json.Marshal(role)
	require.NoError(tb, err)
	return string(raw)
}

func asYAML(tb testing.TB, role rbacv1.ClusterRole) string {
	tb.Helper()
	raw, err := yaml.Marshal(role)
	require.NoError(tb, err)
	return string(raw)
}

func asProtobuf(tb testing.TB, role rbacv1.ClusterRole) string {
	tb.Helper()
	scheme := runtime.NewScheme()
	require.NoError(tb, rbacv1.AddToScheme(scheme))
	var b bytes.Buffer
	require.NoError(tb, protobuf.NewSerializer(scheme, scheme).Encode(&role, &b))
	return b.String()
}

// The attack: a role of a few KiB that kcp makes millions of rules of, before its admission policy is asked. One request
// takes all memory.
func TestRole_withMillionsOfActionsIsRefused(t *testing.T) {
	t.Parallel()
	bomb := roleOf(240, 240, 240)
	rules := `"rules":` + strings.TrimSuffix(strings.SplitN(asJSON(t, bomb), `"rules":`, 2)[1], "}")
	const sixteen = `{"verbs":["a","b"],"apiGroups":["a","b"],"resources":["a","b"],"resourceNames":["a","b"]},`
	many := `{"rules":[` + strings.Repeat(sixteen, 2100) + `{}]}`
	list := "[" + strings.Repeat(`"a",`, 200) + `"a"]`
	urls := `{"rules":[{"verbs":` + list + `,"nonResourceURLs":` + list + `}]}`
	names := `{"rules":[{"verbs":["get"],"apiGroups":[""],"resources":` + list + `,"resourceNames":` + list + `}]}`
	for name, c := range map[string]struct{ method, path, media, body string }{
		"a creation":                {post, allRoles, "application/json", asJSON(t, bomb)},
		"a creation without a type": {post, allRoles, "", asJSON(t, bomb)},
		"a type with a charset":     {post, allRoles, "Application/JSON; charset=utf-8", asJSON(t, bomb)},
		"a dry run":                 {post, allRoles + "?dryRun=All", "application/json", asJSON(t, bomb)},
		"a role in a namespace":     {post, rbacPath + "/namespaces/n/roles", "application/json", asJSON(t, bomb)},
		"a path that ends in /":     {post, allRoles + "/", "application/json", asJSON(t, bomb)},
		"an update":                 {put, aRole, "application/json", asJSON(t, bomb)},
		"an update in a namespace":  {put, rbacPath + "/namespaces/n/roles/r", "application/json", asJSON(t, bomb)},
		"YAML":                      {post, allRoles, "application/yaml", asYAML(t, bomb)},
		"an update in YAML":         {put, aRole, "application/yaml; x=y", asYAML(t, bomb)},
		"JSON that is said YAML":    {post, allRoles, "application/yaml", asJSON(t, bomb)},
		"Protobuf":                  {post, allRoles, inProto, asProtobuf(t, bomb)},
		"an update in Protobuf":     {put, aRole, inProto, asProtobuf(t, bomb)},
		"a merge patch":             {patch, aRole, merge, "{" + rules + "}"},
		"a patch with a charset":    {patch, aRole, merge + ";charset=utf-8", "{" + rules + "}"},
		"a strategic patch":         {patch, aRole, strategic, "{" + rules + "}"},
		"a strategic replacement":   {patch, aRole, strategic, `{"$patch":"replace",` + rules + "}"},
		"an apply":                  {patch, aRole + "?fieldManager=m", applied, asJSON(t, bomb)},
		"an apply in YAML":          {patch, aRole + "?fieldManager=m&force=true", applied, asYAML(t, bomb)},
		"keys in escapes":           {post, allRoles, "", strings.Replace(asJSON(t, bomb), "verbs", `v\u0065rbs`, 1)},
		"keys in upper case":        {post, allRoles, "", strings.Replace(asJSON(t, bomb), "verbs", `Verbs`, 1)},
		"the same field twice":      {patch, aRole, merge, `{"rules":[{"verbs":["a"]}],` + rules + "}"},
		"the same field, smaller":   {patch, aRole, merge, "{" + rules + `,"rules":[]}`},
		"a list twice":              {post, allRoles, "", `{"rules":[{"verbs":["a"],"verbs":["b"]}]}`},
		"a field in both cases":     {post, allRoles, "", `{"rules":[],"Rules":[]}`},
		"many rules":                {post, allRoles, "", many},
		"many empty rules":          {post, allRoles, "", `{"rules":[` + strings.Repeat("{},", 1<<15) + "{}]}"},
		"many URLs":                 {post, allRoles, "", urls},
		"many names":                {post, allRoles, "", names},
		"a JSON patch that adds":    {patch, aRole, jsonPatch, `[{"op":"add","path":"/rules/-","value":{"verbs":["a"]}}]`},
		"a JSON patch of all rules": {patch, aRole, jsonPatch, `[{"op":"replace","path":"/rules","value":` + rulesOf(t, 240) + `}]`},
		"a JSON patch of all, twice": {
			patch, aRole, jsonPatch,
			`[{"op":"add","value":[],"path":"/rules"},{"value":` + rulesOf(t, 240) + `,"op":"add","path":"/rules"}]`,
		},
		"a JSON patch that moves":  {patch, aRole, jsonPatch, `[{"op":"move","from":"/metadata/annotations/a","path":"/rules"}]`},
		"a JSON patch of a list":   {patch, aRole, jsonPatch, `[{"op":"add","path":"/rules/0/verbs/-","value":"a"}]`},
		"a JSON patch of all":      {patch, aRole, jsonPatch, `[{"op":"test","path":"/kind"},{"op":"replace","path":"","value":{}}]`},
		"a JSON patch by a prefix": {patch, aRole, jsonPatch, `[{"op":"add","path":"x/rules/-","value":{}}]`},
		"a JSON patch in escapes":  {patch, aRole, jsonPatch, `[{"op":"add","p\u0061th":"/rul\u0065s/-","value":{}}]`},
		"a JSON patch that copies": {patch, aRole, jsonPatch, `[{"op":"copy","from":"/rules/0","path":"/metadata/annotations"}]`},
		"a JSON patch, twice":      {patch, aRole, jsonPatch, `[{"op":"add","path":"/metadata/labels","path":"/rules","value":{}}]`},
	} {
		for _, chunked := range []bool{false, true} {
			k := &reading{}
			h := newHub(t, kcpURL, k)
			w := h.do(withBody(c.method, c.path, c.media, c.body, chunked))
			require.Equal(t, http.StatusUnprocessableEntity, w.Code, "%s: %s", name, w.Body)
			require.Empty(t, k.bodies, "%s: kcp gets nothing", name)
			status := statusOf(t, w.Body.Bytes())
			require.NotEmpty(t, status.Details.Causes, name)
			require.Contains(t, []string{"rules", "verbs", "path"}, status.Details.Causes[0].Field, name)
		}
	}
	// Elevation gives no way around it.
	k := &reading{}
	h := newHub(t, kcpURL, k)
	h.rights.set("alice", true, inWorkspace(v1alpha1.RoleMember))
	w := h.do(withBody(post, rbacPath+"/clusterroles", "", asJSON(t, bomb), false,
		"Impersonate-User", "kedge:alice", "Impersonate-Group", "kedge:workspace:"+wsA+":sudo"))
	require.Equal(t, http.StatusUnprocessableEntity, w.Code, "%s", w.Body)
	require.Empty(t, k.bodies)
}

// What the hub cannot read as kcp does is no role.
func TestRole_thatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	long := "rules: [] # " + strings.Repeat("x", 600<<10)
	for name, c := range map[string]struct {
		method, path, media, body string
		code                      int
	}{
		"CBOR":                      {post, allRoles, "application/cbor", "\xa0", 415},
		"an apply in CBOR":          {patch, aRole, "application/apply-patch+cbor", "\xa0", 415},
		"a type with a blank":       {patch, aRole, merge + " ", "{}", 415},
		"a type that is no type":    {post, allRoles, "application/json; =", "{}", 415},
		"Protobuf of another form":  {post, allRoles, inProto, "{}", 422},
		"Protobuf that ends early":  {post, allRoles, inProto, asProtobuf(t, roleOf(1, 1, 1))[:60], 422},
		"a wide number of a field":  {post, allRoles, inProto, "k8s\x00\x92\x80\x80\x80\x80\x01\x00", 422},
		"JSON that ends early":      {post, allRoles, "", `{"rules":[{"verbs":["a"`, 422},
		"a list":                    {post, allRoles, "", `[{"rules":[]}]`, 422},
		"rules that are an object":  {post, allRoles, "", `{"rules":{"0":{}}}`, 422},
		"a rule that is a list":     {post, allRoles, "", `{"rules":[[]]}`, 422},
		"verbs that are an object":  {post, allRoles, "", `{"rules":[{"verbs":{}}]}`, 422},
		"a JSON patch, one object":  {patch, aRole, jsonPatch, `{"op":"add","path":"/metadata"}`, 422},
		"a path that is an object":  {patch, aRole, jsonPatch, `[{"op":"add","path":{}}]`, 422},
		"YAML with a field twice":   {post, allRoles, "application/yaml", "rules: []\nrules: []\n", 422},
		"YAML that cannot be read":  {post, allRoles, "application/yaml", "rules: ]", 422},
		"YAML with an alias":        {post, allRoles, "application/yaml", "x: &a []\nrules: *a\n", 422},
		"YAML of more than 512 KiB": {post, allRoles, "application/yaml", long, 413},
		"JSON of more than 3 MiB":   {post, allRoles, "", `{"a":"` + strings.Repeat("x", 3<<20) + `"}`, 413},
	} {
		k := &reading{}
		w := newHub(t, kcpURL, k).do(withBody(c.method, c.path, c.media, c.body, false))
		require.Equal(t, c.code, w.Code, "%s: %s", name, w.Body)
		require.Empty(t, k.bodies, name)
		if statusOf(t, w.Body.Bytes()); c.code != http.StatusRequestEntityTooLarge || c.media != "" {
			require.Contains(t, w.Body.String(), "JSON", "%s: it says what to send", name)
		}
	}
	k := &reading{}
	r := withBody(post, allRoles, "", "{}", false, "Content-Type", "text/plain", "Content-Type", "application/yaml")
	require.Equal(t, http.StatusUnsupportedMediaType, newHub(t, kcpURL, k).do(r).Code)
}

// Roles of ordinary sizes reach kcp as they were sent.
func TestRole_ofAnOrdinarySizePasses(t *testing.T) {
	t.Parallel()
	large := roleOf(1, 1, 1)
	large.Rules = nil
	for i := range 180 {
		rule := rbacv1.PolicyRule{
			APIGroups: []string{fmt.Sprintf("g%d.example.com", i)}, Verbs: []string{"get", "list", "watch", "create", "update", "patch"},
		}
		for j := range 5 {
			rule.Resources = append(rule.Resources, fmt.Sprintf("x%d", j), fmt.Sprintf("x%d/status", j), fmt.Sprintf("x%d/finalizers", j))
		}
		large.Rules = append(large.Rules, rule)
	}
	for name, c := range map[string]struct{ method, path, media, body string }{
		"a large role":               {post, allRoles, "application/json", asJSON(t, large)},
		"a large role in YAML":       {post, allRoles, "application/yaml", asYAML(t, large)},
		"a large role in Protobuf":   {post, allRoles, inProto, asProtobuf(t, large)},
		"a large apply":              {patch, aRole, applied, asJSON(t, large)},
		"a large apply in YAML":      {patch, aRole, applied, asYAML(t, large)},
		"32 of each":                 {put, aRole, "application/json", asJSON(t, roleOf(32, 32, 32))},
		"32 of each in Protobuf":     {put, aRole, inProto, asProtobuf(t, roleOf(32, 32, 32))},
		"no rules":                   {post, allRoles, "", `{"rules":null,"metadata":{"name":"r"}}`},
		"labels":                     {patch, aRole, merge, `{"metadata":{"labels":{"rules":"a"}}}`},
		"all rules by a JSON patch":  {patch, aRole, jsonPatch, `[{"op":"replace","path":"/rules","value":` + rulesOf(t, 20) + `}]`},
		"labels by a JSON patch":     {patch, aRole, jsonPatch, `[{"op":"add","path":"/metadata/rules","value":{"path":"/rules"}}]`},
		"a removal":                  {http.MethodDelete, aRole, "application/json", `{"propagationPolicy":"Foreground"}`},
		"a binding":                  {post, rbacPath + "/clusterrolebindings", "", `{"roleRef":{"name":"r"}}`},
		"a JSON patch of a binding":  {patch, rbacPath + "/rolebindings/b", jsonPatch, `[{"op":"add","path":"/subjects/-"}]`},
		"an object of a like name":   {post, "/clusters/aaaa/apis/example.com/v1/clusterroles", "text/x", strings.Repeat("x", 100)},
		"rules of a policy":          {post, "/clusters/aaaa/apis/example.com/v1/rules", "", asJSON(t, roleOf(240, 240, 240))},
		"what kcp refuses by itself": {post, allRoles, "", `{"rules":"a"}`},
	} {
		for _, chunked := range []bool{false, true} {
			k := &reading{}
			w := newHub(t, kcpURL, k).do(withBody(c.method, c.path, c.media, c.body, chunked))
			require.Equal(t, http.StatusOK, w.Code, "%s: %s", name, w.Body)
			require.Equal(t, []string{c.body}, k.bodies, "%s: once, and whole", name)
		}
	}
}

// The attack: a body in YAML that names a long text once and repeats it by its name. kcp writes the text each time, before
// it asks for a right to what is in the body: 19 KB become 30 MB.
func TestYAML_thatRepeatsATextIsRefused(t *testing.T) {
	t.Parallel()
	bomb := "a: &a " + strings.Repeat("x", 10_000) + "\nb: [" + strings.Repeat("*a,", 3000) + "]\n"
	converted, err := yaml.YAMLToJSON([]byte(bomb))
	require.NoError(t, err, "the library does not refuse it")
	require.Greater(t, len(converted), 1000*len(bomb))
	const objects = "/clusters/aaaa/api/v1/namespaces/n/configmaps"
	for name, c := range map[string]struct{ method, path, media string }{
		"a creation":         {post, objects, "application/yaml"},
		"a type with more":   {post, objects, " Application/YAML; charset=utf-8"},
		"an update":          {put, objects + "/c", "application/yaml"},
		"an apply":           {patch, objects + "/c?fieldManager=m", applied},
		"an apply of status": {patch, objects + "/c/status", applied},
		"a dry run":          {post, objects + "?dryRun=All", "application/yaml"},
		"a removal":          {http.MethodDelete, objects + "/c", "application/yaml"},
		"a removal of all":   {http.MethodDelete, objects, "application/yaml"},
		"a review":           {post, "/clusters/aaaa/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/yaml"},
		"a token":            {post, "/clusters/aaaa/api/v1/namespaces/n/serviceaccounts/s/token", "application/yaml"},
		"a custom resource":  {post, "/clusters/aaaa/apis/example.com/v1/widgets", "application/yaml"},
	} {
		for _, chunked := range []bool{false, true} {
			k := &reading{}
			w := newHub(t, kcpURL, k).do(withBody(c.method, c.path, c.media, bomb, chunked))
			require.Equal(t, http.StatusUnprocessableEntity, w.Code, "%s: %s", name, w.Body)
			require.Contains(t, statusOf(t, w.Body.Bytes()).Message, "*a", name)
			require.Empty(t, k.bodies, name)

			// JSON has no aliases, and YAML without them is what people send.
			for _, body := range []string{`{"a":"&a","b":"*a"}`, "a: 1\nb: |\n  rm *.txt &\n"} {
				k := &reading{}
				w := newHub(t, kcpURL, k).do(withBody(c.method, c.path, c.media, body, chunked))
				require.Equal(t, http.StatusOK, w.Code, "%s: %s", name, w.Body)
				require.Equal(t, []string{body}, k.bodies, name)
			}
		}
	}
	k := &reading{}
	w := newHub(t, kcpURL, k).do(withBody(post, objects, "application/json", bomb, false))
	require.Equal(t, http.StatusOK, w.Code, "kcp does not read JSON as YAML")
}

// rulesOf is a list of one rule with lists of n texts.
func rulesOf(t *testing.T, n int) string {
	raw, err := json.Marshal(roleOf(n, n, n).Rules)
	require.NoError(t, err)
	return string(raw)
}
