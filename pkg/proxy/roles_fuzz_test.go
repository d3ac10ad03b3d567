package proxy

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// What the hub counts in a role is at least what kcp decodes, of whatever text. kcp decodes JSON by key, with the last of
// two equal ones, and YAML by way of JSON.
func FuzzRole_countsAllThatKcpDecodes(f *testing.F) {
	scheme := runtime.NewScheme()
	require.NoError(f, rbacv1.AddToScheme(scheme))
	decoder := protobuf.NewSerializer(scheme, scheme)
	role := rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"a", "b"}, Resources: []string{"c", "d"}, Verbs: []string{"e", "f"}, ResourceNames: []string{"h", "i"}},
		{NonResourceURLs: []string{"/", "/api"}, Verbs: []string{"get", "head"}},
	}}
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	var encoded bytes.Buffer
	require.NoError(f, decoder.Encode(&role, &encoded))
	f.Add(encoded.Bytes())
	for _, text := range []string{
		`{"rules":[{"apiGroups":["a","b"],"resources":["c"],"verbs":["e","f"]}]}`,
		`{"rules":[{"apiGroups":["a","b"]},{}],"rules":[{"resources":["c","d"],"verbs":["e"]}]}`,
		`{"Rules":[{"verbs":["a"]}],"rules":[{"VERBS":["a","b"],"verbs":["c"],"nonResourceURLs":["/","/a"]}]}`,
		`{"rules":[{"verbs":["a"],"verbs":["b","c"],"apiGroups":[""],"resources":["x"]},null]}`,
		`{"rules":null}{"rules":[]}`, `{"rules":{"verbs":[]}}`, `{"ru\u006ces":[{"ver\u0062s":["a"],"nonResourceURLs":["/"]}]}`,
		"rules:\n- verbs: [a, b]\n  apiGroups: ['']\n  resources: [x, y]\n",
		"rules: &a []\nx: *a\n", "<<: {rules: [{verbs: [a], nonResourceURLs: [/]}]}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if counted, err := inJSON(body); err == nil {
			var kcps rbacv1.ClusterRole
			if kjson.UnmarshalCaseSensitivePreserveInts(body, &kcps) == nil {
				require.GreaterOrEqual(t, int(counted), tenancy.Actions(kcps.Rules, tenancy.MaxRuleActions), "%s", body)
			}
		}
		if counted, err := inProtobuf(body); err == nil {
			var kcps rbacv1.ClusterRole
			if _, _, err := decoder.Decode(body, nil, &kcps); err == nil {
				require.GreaterOrEqual(t, int(counted), tenancy.Actions(kcps.Rules, tenancy.MaxRuleActions), "%q", body)
			}
		}
		if !json.Valid(body) && checkAliases(body) == nil {
			converted, err := yaml.YAMLToJSON(body)
			require.True(t, err != nil || len(converted) <= 16+12*len(body), "%q becomes %d bytes", body, len(converted))
		}
	})
}

func TestCheckAliases_findsWhatTheParserTakesForOne(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	for name, c := range map[string]struct {
		text    string
		refused bool
	}{
		"a sequence":                    {"a: &n " + long + "\nb: [*n, *n]\n", true},
		"a flow without blanks":         {"{a: &n " + long + ",b: [*n,*n]}", true},
		"a merge":                       {"a: &n {x: " + long + "}\nb: {<<: *n}\n", true},
		"a key":                         {"&n " + long + ": 1\nb:\n- *n\n- *n\n", true},
		"behind a tag":                  {"a: !!str &n " + long + "\nb: [*n, *n]\n", true},
		"before a tag":                  {"a: &n !!str " + long + "\nb: [*n, *n]\n", true},
		"a name of digits":              {"a: &0-_ " + long + "\nb: [*0-_, *0-_]\n", true},
		"another document":              {"a: &n " + long + "\nb: [*n]\n---\nc: 1\n", true},
		"UTF-16":                        {"\xff\xfea\x00:\x00 \x00&\x00n\x00", true},
		"anchors without names":         {strings.Repeat("- &", 1001), false},
		"too many anchors":              {manyAnchors(1001), true},
		"anchors that nothing names":    {manyAnchors(1000), false},
		"an alias of another name":      {"a: &n 1\nb: '*m'\n", false},
		"a glob and a job of a shell":   {"data:\n  run: |\n    sleep 1 & rm *.txt\n", false},
		"a text that reads like both":   {"data:\n  c: |\n    int *p = &x; y = *x;\n", true},
		"markdown":                      {"data: {text: 'some *bold* and &amp; more'}\n", false},
		"neither":                       {"a: 1\n", false},
		"marks at the end of the text":  {"a: 1 # & *", false},
		"marks that follow one another": {"a: '&&n **n'\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.refused, checkAliases([]byte(c.text)) != nil)
		})
	}
}

func manyAnchors(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("- &a" + strings.Repeat("x", i) + " 1\n")
	}
	return b.String()
}
