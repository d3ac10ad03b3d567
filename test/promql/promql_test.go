// Package promql tests the alerts and the dashboard of deploy/chart with Prometheus' own parser and
// with promtool.
package promql

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const (
	chart   = "../../deploy/chart"
	metrics = "../../pkg/metrics/doc.go"
)

// alert is an alert of deploy/chart/alerts.yaml.
type alert struct{ Alert, Expr, For, Severity, Summary string }

func alerts(t *testing.T) (all []alert) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(chart, "alerts.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(raw, &all))
	require.Greater(t, len(all), 10)
	return all
}

// documented returns the labels of every metric that the package comment of pkg/metrics lists.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(metrics)
	require.NoError(t, err)
	known := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^//   - (kedge_\w+)(?:\{([^}]*)\})?:`).FindAllStringSubmatch(string(raw), -1) {
		known[m[1]] = strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' })
	}
	require.Greater(t, len(known), 20)
	return known
}

// check parses a query and requires that its metrics and their labels exist. It returns the metrics.
func check(t *testing.T, known map[string][]string, query string) []string {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	require.NoError(t, err, query)
	var used []string
	// Prometheus adds these to every series.
	allowed := map[string]bool{"job": true, "namespace": true, "pod": true, "instance": true, "le": true}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok || !strings.HasPrefix(s.Name, "kedge_") {
			return nil
		}
		name := s.Name
		if _, ok := known[name]; !ok {
			name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		}
		has, ok := known[name]
		require.True(t, ok, "no metric %s: %s", s.Name, query)
		used = append(used, name)
		for _, m := range s.LabelMatchers {
			require.True(t, m.Name == labels.MetricName || allowed[m.Name] || slices.Contains(has, m.Name), "%s has no label %s: %s", name, m.Name, query)
		}
		for _, label := range has {
			allowed[label] = true
		}
		return nil
	})
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if a, ok := n.(*parser.AggregateExpr); ok {
			for _, label := range a.Grouping {
				require.True(t, allowed[label], "no metric has the label %s: %s", label, query)
			}
		}
		return nil
	})
	return used
}

func TestAlerts_useMetricsAndLabelsThatExist(t *testing.T) {
	t.Parallel()
	known := documented(t)
	for _, a := range alerts(t) {
		require.NotEmpty(t, check(t, known, a.Expr), a.Alert)
	}
}

// promtool runs Prometheus' own tool.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	program := os.Getenv("KEDGE_TEST_PROMTOOL")
	require.NotEmpty(t, program, "KEDGE_TEST_PROMTOOL is not set: run make test-deploy")
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// target are the labels that Prometheus adds to the series of a hub.
const target = `namespace="kedge",job="hub"`

// series are series of one replica with their values in the notation of promtool, a value a minute.
type series map[string]string

// list returns the series of a pod as promtool reads them.
func (s series) list(pod string) (all []map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		metric, rest, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		all = append(all, map[string]string{"series": fmt.Sprintf(`%s{%s,pod=%q%s}`, metric, target, pod, prefixed(rest)), "values": s[name]})
	}
	return all
}

func prefixed(rest string) string {
	if rest == "" {
		return ""
	}
	return "," + rest
}

// histogram returns the buckets of a histogram with ten observations a minute, all of which are
// between two bounds.
func histogram(name, rest, below, in string) series {
	return series{
		name + "_bucket{" + rest + `le="` + below + `"}`: "0x240",
		name + "_bucket{" + rest + `le="` + in + `"}`:    "0+10x240",
		name + "_bucket{" + rest + `le="+Inf"}`:          "0+10x240",
	}
}

func merge(all ...series) series {
	merged := series{}
	for _, s := range all {
		maps.Copy(merged, s)
	}
	return merged
}

// in returns other series with these in place of equal ones. The buckets of a histogram are replaced
// together.
func (s series) in(other series) series {
	name := func(key string) string { before, _, _ := strings.Cut(key, `le="`); return before }
	replaced := map[string]bool{}
	for key := range s {
		replaced[name(key)] = true
	}
	left := maps.Clone(other)
	maps.DeleteFunc(left, func(key, _ string) bool { return replaced[name(key)] })
	return merge(left, s)
}

// healthy are the series of a replica under load for which no alert fires.
func healthy() series {
	return merge(series{
		"kedge_ready": "1x240", `kedge_check_ok{check="kcp"}`: "1x240", `kedge_check_ok{check="usernames"}`: "1x240", "kedge_leader": "1x240",
		`kedge_http_requests_total{route="/api/orgs",method="GET",code="200"}`: "0+600x240", `kedge_http_requests_total{route="/api/orgs",method="GET",code="503"}`: "0+3x240",
		`kedge_kcp_requests_total{method="GET",code="200"}`: "0+600x240", `kedge_kcp_requests_total{method="GET",code="error"}`: "0+3x240",
		"kedge_revocation_late_total": "0x240", "kedge_audit_lost_total": "5x240", "kedge_records_lag_seconds": "0x120 200x10 0x110", "kedge_records_lost_total": "5x240", `kedge_limited_total{limit="streams"}`: "0+6x240",
		"kedge_usage_lag_seconds": "20x120 200x10 20x110", "kedge_usage_lost_total": "5x240",
		"kedge_billing_changes_lag_seconds": "0x120 200x10 0x110", "kedge_billing_lag_seconds": "0x120 5000x10 0x110",
		`kedge_logins_total{client="cli",result="ok"}`: "0+9x240", `kedge_logins_total{client="cli",result="refused"}`: "0+9x240", `kedge_logins_total{client="cli",result="error"}`: "0+1x240",
		`kedge_session_renewals_total{result="ok"}`: "0+9x240", `kedge_session_renewals_total{result="error"}`: "0+1x240",
		"kedge_oidc_issuer_up": "1x240", `kedge_file_stale{flag="token-file"}`: "0x240",
		// In promtool's tests time begins at 0.
		`kedge_certificate_expiry_timestamp_seconds{certificate="serving"}`: "2592000x240",
		"kedge_backup_last_timestamp_seconds":                               "0x240", "kedge_backup_last_bytes": "1e9x240",
		"kedge_restore_mode": "0x240", "kedge_purges_held": "1x30 0x210",
		"kedge_etcd_size_bytes": "1e9x240", "kedge_etcd_quota_bytes": "2e9x240",
		`kedge_storage_used_ratio{store="etcd"}`: "0.5x240", `kedge_storage_floor{store="etcd"}`: "0x240",
		`kedge_etcd_maintenance_total{action="compact",result="error"}`: "0x240",
		`kedge_controller_queue_depth{controller="user"}`:               "500x5 0x235", `kedge_controller_errors_total{controller="user"}`: "0+1x240",
		`kedge_workspaces{phase="Progressing"}`: "100x10 0x230", `kedge_workspaces{phase="Ready"}`: "100x240",
		// A token that was issued for an hour.
		"kedge_bot_tokens_ending": "0x60 1x50 0x130",
	},
		histogram("kedge_http_request_duration_seconds", `route="/api/orgs",method="GET",`, "0.001", "0.1"),
		// Watches are long.
		histogram("kedge_http_request_duration_seconds", `route="/clusters/*",method="GET",`, "10", "30"),
		histogram("kedge_kcp_request_duration_seconds", `method="GET",`, "0.001", "0.1"),
		histogram("kedge_views_lag_seconds", `view="users",`, "0", "1"),
		histogram("kedge_proxy_revocation_seconds", "", "0.001", "0.1"))
}

// Every alert fires on these series in place of the healthy ones, with these labels beside the
// severity, and no other alert than those of besides.
func firing() map[string]struct {
	given   series
	labels  map[string]string
	besides []string
} {
	type c = struct {
		given   series
		labels  map[string]string
		besides []string
	}
	hub := func(more ...string) map[string]string {
		l := map[string]string{"namespace": "kedge", "job": "hub"}
		for i := 0; i < len(more); i += 2 {
			l[more[i]] = more[i+1]
		}
		return l
	}
	return map[string]c{
		"KedgeHubDown":               {given: nil, labels: map[string]string{}},
		"KedgeHubUnavailable":        {given: series{"kedge_ready": "0x240"}, labels: hub(), besides: []string{"KedgeHubReplicaNotReady"}},
		"KedgeHubReplicaNotReady":    {given: series{"kedge_ready": "0x240"}, labels: hub("pod", "hub-0"), besides: []string{"KedgeHubUnavailable"}},
		"KedgeHubCheckFails":         {given: series{`kedge_check_ok{check="usernames"}`: "0x240"}, labels: hub("check", "usernames")},
		"KedgeHubNoLeader":           {given: series{"kedge_leader": "0x240"}, labels: hub()},
		"KedgeHubErrors":             {given: series{`kedge_http_requests_total{route="/api/orgs",method="GET",code="503"}`: "0+60x240"}, labels: hub()},
		"KedgeHubSlow":               {given: histogram("kedge_http_request_duration_seconds", `route="/api/orgs",method="GET",`, "0.1", "3"), labels: hub()},
		"KedgeHubKcpErrors":          {given: series{`kedge_kcp_requests_total{method="GET",code="error"}`: "0+60x240"}, labels: hub()},
		"KedgeHubKcpSlow":            {given: histogram("kedge_kcp_request_duration_seconds", `method="GET",`, "0.1", "6"), labels: hub()},
		"KedgeHubCachesLag":          {given: histogram("kedge_views_lag_seconds", `view="users",`, "5", "10"), labels: hub()},
		"KedgeHubRevocationSlow":     {given: histogram("kedge_proxy_revocation_seconds", "", "1", "2.5"), labels: hub()},
		"KedgeHubRevocationLate":     {given: series{"kedge_revocation_late_total": "0x115 1x124"}, labels: hub("pod", "hub-0")},
		"KedgeHubAuditLost":          {given: series{"kedge_audit_lost_total": "0x115 1x124"}, labels: hub()},
		"KedgeHubRecordsBehind":      {given: series{"kedge_records_lag_seconds": "0+30x240"}, labels: hub("pod", "hub-0")},
		"KedgeHubBillingBehind":      {given: series{"kedge_billing_lag_seconds": "8000x240"}, labels: hub("pod", "hub-0")},
		"KedgeHubRecordsLost":        {given: series{"kedge_records_lost_total": "0x115 1x124"}, labels: hub()},
		"KedgeHubLimited":            {given: series{`kedge_limited_total{limit="streams"}`: "0+120x240"}, labels: hub("limit", "streams")},
		"KedgeHubLoginsFail":         {given: series{`kedge_logins_total{client="cli",result="error"}`: "0+9x240"}, labels: hub()},
		"KedgeHubRenewalsFail":       {given: series{`kedge_session_renewals_total{result="error"}`: "0+9x240"}, labels: hub()},
		"KedgeHubIssuerDown":         {given: series{"kedge_oidc_issuer_up": "0x240"}, labels: hub()},
		"KedgeHubBotTokensEnd":       {given: series{"kedge_bot_tokens_ending": "0x30 2x210"}, labels: hub()},
		"KedgeHubFileStale":          {given: series{`kedge_file_stale{flag="token-file"}`: "1x240"}, labels: hub("flag", "token-file")},
		"KedgeHubCertificateExpires": {given: series{`kedge_certificate_expiry_timestamp_seconds{certificate="serving"}`: "1200000x240"}, labels: hub("certificate", "serving")},
		"KedgeHubStorageLow":         {given: series{`kedge_storage_used_ratio{store="etcd"}`: "0.75x240"}, labels: hub("store", "etcd")},
		"KedgeHubStorageUnread":      {given: series{"kedge_storage_incomplete_workspaces": "1x240"}, labels: hub()},
		"KedgeHubStorageRefusesGrowth": {
			given:  series{`kedge_storage_used_ratio{store="etcd"}`: "0.85x240", `kedge_storage_floor{store="etcd"}`: "1x240"},
			labels: hub("store", "etcd"), besides: []string{"KedgeHubStorageLow"},
		},
		"KedgeHubStorageFull": {
			given:  series{`kedge_storage_used_ratio{store="etcd"}`: "0.96x240", `kedge_storage_floor{store="etcd"}`: "2x240"},
			labels: hub("store", "etcd"), besides: []string{"KedgeHubStorageLow"},
		},
		"KedgeHubEtcdMaintenanceFails": {
			given:  series{`kedge_etcd_maintenance_total{action="compact",result="error"}`: "0+1x240"},
			labels: hub("action", "compact"),
		},
		"KedgeHubBackupOld":        {given: series{"kedge_backup_last_timestamp_seconds": "-200000x240"}, labels: hub()},
		"KedgeHubPurgesHeld":       {given: series{"kedge_purges_held": "1x240"}, labels: hub()},
		"KedgeHubQueueGrows":       {given: series{`kedge_controller_queue_depth{controller="user"}`: "500x240"}, labels: hub("controller", "user", "pod", "hub-0")},
		"KedgeHubControllerErrors": {given: series{`kedge_controller_errors_total{controller="user"}`: "0+12x240"}, labels: hub("controller", "user")},
		"KedgeHubWorkspacesStuck":  {given: series{`kedge_workspaces{phase="Progressing"}`: "50+1x240"}, labels: hub()},
	}
}

func TestAlerts_fireWhenTheyShouldAndOnlyThen(t *testing.T) {
	t.Parallel()
	type rule struct {
		Alert       string            `yaml:"alert"`
		Expr        string            `yaml:"expr"`
		For         string            `yaml:"for"`
		Labels      map[string]string `yaml:"labels"`
		Annotations map[string]string `yaml:"annotations"`
	}
	type expected struct {
		Labels      map[string]string `yaml:"exp_labels"`
		Annotations map[string]string `yaml:"exp_annotations"`
	}
	type evaluation struct {
		At     string     `yaml:"eval_time"`
		Alert  string     `yaml:"alertname"`
		Alerts []expected `yaml:"exp_alerts"`
	}
	type unit struct {
		Name     string              `yaml:"name"`
		Interval string              `yaml:"interval"`
		Series   []map[string]string `yaml:"input_series"`
		Tests    []evaluation        `yaml:"alert_rule_test"`
	}
	all := alerts(t)
	rules, cases := []rule{}, firing()
	require.Len(t, cases, len(all))
	for _, a := range all {
		rules = append(rules, rule{a.Alert, a.Expr, a.For, map[string]string{"severity": a.Severity}, map[string]string{"summary": a.Summary}})
	}
	of := func(a alert, labels map[string]string) []expected {
		labels = maps.Clone(labels)
		labels["severity"] = a.Severity
		return []expected{{labels, map[string]string{"summary": a.Summary}}}
	}
	// At two hours, every alert has had the time of its condition.
	const at = "2h"
	quiet := unit{Name: "healthy", Interval: "1m", Series: healthy().list("hub-0")}
	units := []unit{}
	for _, a := range all {
		quiet.Tests = append(quiet.Tests, evaluation{At: at, Alert: a.Alert, Alerts: []expected{}})
		c, ok := cases[a.Alert]
		require.True(t, ok, "no series that makes %s fire", a.Alert)
		u := unit{Name: a.Alert, Interval: "1m"}
		if c.given != nil {
			u.Series = c.given.in(healthy()).list("hub-0")
		}
		for _, other := range all {
			switch {
			case other.Alert == a.Alert:
				u.Tests = append(u.Tests, evaluation{at, a.Alert, of(a, c.labels)})
			case !slices.Contains(c.besides, other.Alert):
				u.Tests = append(u.Tests, evaluation{at, other.Alert, []expected{}})
			}
		}
		units = append(units, u)
	}
	dir := t.TempDir()
	write := func(name string, content any) string {
		raw, err := yaml.Marshal(content)
		require.NoError(t, err)
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, raw, 0o600))
		return file
	}
	file := write("rules.yaml", map[string]any{"groups": []any{map[string]any{"name": "kedge-hub", "rules": rules}}})
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", file)
	promtool(t, "test", "rules", write("tests.yaml", map[string]any{
		"rule_files": []string{file}, "evaluation_interval": "1m", "tests": append(units, quiet),
	}))
}

// panel is a panel of the dashboard, or a row of panels.
type panel struct {
	ID          int
	Title, Type string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Datasource  map[string]string
	Targets     []struct{ Expr, LegendFormat, RefID string }
	Panels      []panel
}

func TestDashboard_queriesParseAndUseMetricsThatExist(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(chart, "dashboard.json"))
	require.NoError(t, err)
	var d struct {
		Title, UID string
		Panels     []panel
		Templating struct {
			List []struct{ Name, Query string }
		}
	}
	require.NoError(t, json.Unmarshal(raw, &d))
	require.NotEmpty(t, d.Title)
	require.NotEmpty(t, d.UID)
	known := documented(t)
	variables := map[string]string{"$__rate_interval": "5m", "$__range": "1h"}
	for _, v := range d.Templating.List {
		variables["$"+v.Name] = ".*"
	}
	variable := regexp.MustCompile(`\$\w+`)
	shown, ids, rows := map[string]bool{}, map[int]bool{}, []string{}
	placed := map[[2]int]string{}
	for _, p := range d.Panels {
		require.False(t, ids[p.ID], "%s has the ID of another panel", p.Title)
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				require.Empty(t, placed[[2]int{x, y}], "%s covers another panel", p.Title)
				require.Less(t, x, 24, p.Title)
				placed[[2]int{x, y}] = p.Title
			}
		}
		require.NotEmpty(t, p.Title)
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		require.NotEmpty(t, p.Targets, p.Title)
		require.Equal(t, "$datasource", p.Datasource["uid"], p.Title)
		for _, target := range p.Targets {
			query := variable.ReplaceAllStringFunc(target.Expr, func(name string) string {
				value, ok := variables[name]
				require.True(t, ok, "%s: no variable %s", p.Title, name)
				return value
			})
			require.Contains(t, target.Expr, `job=~"$job"`, "%s: %s shows all hubs", p.Title, target.Expr)
			used := check(t, known, query)
			require.NotEmpty(t, used, p.Title)
			for _, name := range used {
				shown[name] = true
			}
		}
	}
	require.Equal(t, []string{"Health", "Requests", "Streams", "Revocation", "Logins and sessions", "Caches", "Controllers", "kcp", "Disk and certificates", "Tenants"}, rows)
	for name := range known {
		require.True(t, shown[name], "no panel shows %s", name)
	}
}
