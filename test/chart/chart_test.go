// Package chart renders the Helm chart of deploy/chart and checks the objects as a Kubernetes API
// server and an operator would.
package chart

import (
	"cmp"
	"encoding/base64"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const chartDir = "../../deploy/chart"

// render returns the objects of the chart by kind and name, and its notes, for the first installation in
// a cluster. apis are those of the cluster, beside the ones that every cluster has.
func render(values string, apis ...string) (objects map[string][]byte, notes string, err error) {
	return cluster{apis: apis}.render(values)
}

// render is render in the cluster.
func (in cluster) render(values string) (objects map[string][]byte, notes string, err error) {
	c, err := loader.Load(chartDir)
	if err != nil {
		return nil, "", err
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return nil, "", err
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.APIVersions = append(slices.Clone(capabilities.APIVersions), in.apis...)
	version, err := chartutil.ParseKubeVersion(cmp.Or(in.version, "v1.37.2"))
	if err != nil {
		return nil, "", err
	}
	capabilities.KubeVersion = *version
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "prod", Namespace: "kedge", IsInstall: true}, capabilities)
	if err != nil {
		return nil, "", err
	}
	rendered, err := engine.RenderWithClientProvider(c, all, in)
	if err != nil {
		return nil, "", err
	}
	objects = map[string][]byte{}
	for file, content := range rendered {
		if strings.HasSuffix(file, "NOTES.txt") {
			notes = content
			continue
		}
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		for _, document := range strings.Split(content, "\n---\n") {
			raw, err := yaml.YAMLToJSONStrict([]byte(document))
			if err != nil {
				return nil, "", err
			}
			if string(raw) == "null" {
				continue
			}
			var head struct {
				Kind     string
				Metadata metav1.ObjectMeta
			}
			if err := yaml.Unmarshal(raw, &head); err != nil {
				return nil, "", err
			}
			objects[head.Kind+"/"+head.Metadata.Name] = raw
		}
	}
	return objects, notes, nil
}

// typed are the kinds whose Go types Kubernetes has.
func typed(kind string) runtime.Object {
	switch kind {
	case "ConfigMap":
		return &corev1.ConfigMap{}
	case "Deployment":
		return &appsv1.Deployment{}
	case "Ingress":
		return &networkingv1.Ingress{}
	case "NetworkPolicy":
		return &networkingv1.NetworkPolicy{}
	case "PodDisruptionBudget":
		return &policyv1.PodDisruptionBudget{}
	case "Secret":
		return &corev1.Secret{}
	case "Service":
		return &corev1.Service{}
	case "ServiceAccount":
		return &corev1.ServiceAccount{}
	case "StatefulSet":
		return &appsv1.StatefulSet{}
	}
	return &unstructured.Unstructured{}
}

const (
	embedded = "externalURL: https://hub.example.com\n"
	external = embedded + "kcp: {embedded: false, existingSecret: kcp-admin}\n"
	common   = "ConfigMap/prod-kedge-hub Service/prod-kedge-hub Service/prod-kedge-hub-metrics ServiceAccount/prod-kedge-hub"
)

// valueSets are values of users, with the kinds and names of the objects beside those that all have.
func valueSets() map[string]struct{ values, kinds string } {
	return map[string]struct{ values, kinds string }{
		"embedded": {embedded, "Secret/prod-kedge-hub-tls StatefulSet/prod-kedge-hub"},
		"external": {external, "Deployment/prod-kedge-hub PodDisruptionBudget/prod-kedge-hub Secret/prod-kedge-hub-tls"},
		"external with volumes": {external + "persistence: {perReplica: true, size: 5Gi, storageClass: fast}\n",
			"PodDisruptionBudget/prod-kedge-hub Secret/prod-kedge-hub-tls StatefulSet/prod-kedge-hub"},
		"cert-manager": {external + "tls: {mode: certManager, certManager: {issuerRef: {name: internal, kind: ClusterIssuer}}}\n",
			"Certificate/prod-kedge-hub Deployment/prod-kedge-hub PodDisruptionBudget/prod-kedge-hub"},
		"all secrets": {external + "tls: {mode: existingSecret, existingSecret: tls}\ntokens: {existingSecret: tokens}\nsessionKeys: {existingSecret: keys}\n" +
			"oidc: {issuerURL: 'https://login.example.com', clientID: kedge, existingSecret: oidc, caExistingSecret: idp-ca}\n" +
			"ci: {issuers: ['https://token.actions.githubusercontent.com', 'https://gitlab.example.com'], caExistingSecret: ci-ca}\n",
			"Deployment/prod-kedge-hub PodDisruptionBudget/prod-kedge-hub"},
		"database": {external + "database: {existingSecret: records, port: 6432}\nnetworkPolicy: {enabled: true, database: [{ipBlock: {cidr: 10.1.0.0/16}}]}\nextraEnv: [{name: KEDGE_HUB_SIGN_UPS, value: '3'}]\n",
			"Deployment/prod-kedge-hub NetworkPolicy/prod-kedge-hub PodDisruptionBudget/prod-kedge-hub Secret/prod-kedge-hub-tls"},
		"billing table": {external + "database: {existingSecret: records}\nbillingDatabase: {existingSecret: finance, port: 6433}\nconfig: {billing-table: hours}\n" +
			"networkPolicy: {enabled: true, billingDatabase: [{ipBlock: {cidr: 10.2.0.0/16}}]}\n",
			"Deployment/prod-kedge-hub NetworkPolicy/prod-kedge-hub PodDisruptionBudget/prod-kedge-hub Secret/prod-kedge-hub-tls"},
		"ingress": {embedded + "tls: {mode: existingSecret, existingSecret: tls}\ningress: {enabled: true, className: nginx}\n",
			"Ingress/prod-kedge-hub StatefulSet/prod-kedge-hub"},
		"ingress, encrypted again": {embedded + "tls: {mode: existingSecret, existingSecret: tls}\ningress: {enabled: true, mode: reencrypt, tlsSecret: public, annotations: {a: b}}\n",
			"Ingress/prod-kedge-hub StatefulSet/prod-kedge-hub"},
		"gateway": {embedded + "tls: {mode: existingSecret, existingSecret: tls}\ngateway: {enabled: true, parentRefs: [{name: public}]}\n",
			"StatefulSet/prod-kedge-hub TLSRoute/prod-kedge-hub"},
		"gateway, encrypted again": {embedded + "tls: {mode: existingSecret, existingSecret: tls}\ngateway: {enabled: true, mode: reencrypt, parentRefs: [{name: public}], caConfigMap: ca}\n",
			"BackendTLSPolicy/prod-kedge-hub HTTPRoute/prod-kedge-hub StatefulSet/prod-kedge-hub"},
		"monitoring": {external + "podDisruptionBudget: {enabled: false}\nserviceMonitor: {enabled: true, labels: {release: prometheus}}\nprometheusRule: {enabled: true}\ndashboard: {enabled: true, annotations: {folder: kedge}}\n" +
			"networkPolicy: {enabled: true, clients: [{namespaceSelector: {}}], metricsClients: [{namespaceSelector: {}}], egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}]}]}\n",
			"ConfigMap/prod-kedge-hub-dashboard Deployment/prod-kedge-hub NetworkPolicy/prod-kedge-hub PrometheusRule/prod-kedge-hub Secret/prod-kedge-hub-tls ServiceMonitor/prod-kedge-hub"},
		"extras": {embedded + "replicaCount: 1\nconfig: {personal-orgs: false, admin-user: [alice, bob]}\nextraArgs: [--log-level=debug]\nextraEnv: [{name: KEDGE_HUB_SIGN_UPS, value: '3'}]\n" +
			"extraVolumes: [{name: template, configMap: {name: template}}]\nextraVolumeMounts: [{name: template, mountPath: /template}]\n" +
			"podLabels: {team: x}\npodAnnotations: {a: b}\nnodeSelector: {disk: ssd}\ntolerations: [{key: a, operator: Exists}]\npriorityClassName: high\n" +
			"affinity: {nodeAffinity: {}}\nimagePullSecrets: [{name: pull}]\npersistence: {storageClass: fast}\nservice: {type: LoadBalancer, annotations: {a: b}}\nserviceAccount: {annotations: {a: b}}\n" +
			"image: {digest: 'sha256:" + strings.Repeat("a", 64) + "'}\n", "Secret/prod-kedge-hub-tls StatefulSet/prod-kedge-hub"},
	}
}

func TestChart_objectsAreThoseOfTheirTypes(t *testing.T) {
	t.Parallel()
	for name, c := range valueSets() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, notes, err := render(c.values)
			require.NoError(t, err)
			want := slices.Sorted(slices.Values(strings.Fields(common + " " + c.kinds)))
			require.Equal(t, want, slices.Sorted(maps.Keys(objects)))
			require.Contains(t, notes, "at https://hub.example.com")
			for id, raw := range objects {
				kind, _, _ := strings.Cut(id, "/")
				o := typed(kind)
				require.NoError(t, yaml.UnmarshalStrict(raw, o), id)
				head, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
				require.NoError(t, err)
				u := unstructured.Unstructured{Object: head}
				require.NotEmpty(t, u.GetAPIVersion(), id)
				require.Equal(t, "kedge", u.GetNamespace(), id)
				require.Equal(t, "prod", u.GetLabels()["app.kubernetes.io/instance"], id)
			}
			sound(t, objects)
			watched(t, objects)
		})
	}
}

// sound checks the pod, and that what refers to it finds it.
func sound(t *testing.T, objects map[string][]byte) {
	t.Helper()
	var pod corev1.PodTemplateSpec
	claimed := map[string]bool{}
	if raw, ok := objects["StatefulSet/prod-kedge-hub"]; ok {
		var s appsv1.StatefulSet
		require.NoError(t, yaml.Unmarshal(raw, &s))
		replicas := 1
		if _, external := objects["PodDisruptionBudget/prod-kedge-hub"]; external {
			replicas = 2
		}
		require.EqualValues(t, replicas, *s.Spec.Replicas)
		require.Equal(t, s.Spec.Selector.MatchLabels["app.kubernetes.io/name"], s.Spec.Template.Labels["app.kubernetes.io/name"])
		pod = s.Spec.Template
		for _, c := range s.Spec.VolumeClaimTemplates {
			claimed[c.Name] = true
		}
	} else {
		var d appsv1.Deployment
		require.NoError(t, yaml.Unmarshal(objects["Deployment/prod-kedge-hub"], &d))
		require.EqualValues(t, 2, *d.Spec.Replicas)
		pod = d.Spec.Template
	}
	spec, container := pod.Spec, pod.Spec.Containers[0]
	require.True(t, *spec.SecurityContext.RunAsNonRoot)
	require.NotZero(t, *spec.SecurityContext.RunAsUser)
	require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, spec.SecurityContext.SeccompProfile.Type)
	require.False(t, *spec.AutomountServiceAccountToken)
	require.False(t, *spec.EnableServiceLinks)
	require.False(t, spec.HostNetwork || spec.HostPID || spec.HostIPC)
	security := container.SecurityContext
	require.Nil(t, security.Privileged)
	require.False(t, *security.AllowPrivilegeEscalation)
	require.True(t, *security.ReadOnlyRootFilesystem)
	require.Equal(t, []corev1.Capability{"ALL"}, security.Capabilities.Drop)
	require.Empty(t, security.Capabilities.Add)
	require.NotContains(t, container.Image, ":latest")
	require.Regexp(t, `^kedge-hub(:.+|@sha256:a{64})$`, container.Image)
	require.NotEmpty(t, container.Resources.Requests)
	for _, probe := range []*corev1.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
		require.Equal(t, corev1.URISchemeHTTPS, probe.HTTPGet.Scheme)
	}
	for _, v := range spec.Volumes {
		claimed[v.Name] = true
	}
	mounts := map[string]bool{}
	for _, m := range container.VolumeMounts {
		require.True(t, claimed[m.Name], "no volume for the mount %s", m.Name)
		require.Empty(t, m.SubPath, "a change of a file below a subPath never reaches the hub")
		mounts[m.MountPath] = true
	}
	// Every file that the configuration names is mounted.
	var config corev1.ConfigMap
	require.NoError(t, yaml.Unmarshal(objects["ConfigMap/prod-kedge-hub"], &config))
	flags := map[string]any{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(config.Data["hub.yaml"]), &flags))
	for flag, value := range flags {
		if file, ok := value.(string); ok && strings.HasPrefix(file, "/etc/kedge-hub/") {
			require.True(t, mounts[file[:strings.LastIndex(file, "/")]], "--%s names %s", flag, file)
		}
	}
	require.Equal(t, "HubConfiguration", flags["kind"])
	var service corev1.Service
	require.NoError(t, yaml.Unmarshal(objects["Service/prod-kedge-hub"], &service))
	for name, value := range service.Spec.Selector {
		require.Equal(t, value, pod.Labels[name])
	}
	if raw, ok := objects["Secret/prod-kedge-hub-tls"]; ok {
		var secret corev1.Secret
		require.NoError(t, yaml.Unmarshal(raw, &secret))
		require.Contains(t, string(secret.Data["ca.crt"]), "BEGIN CERTIFICATE")
		require.Contains(t, base64.StdEncoding.EncodeToString(secret.Data["tls.key"]), "LS0t")
	}
}

// watched checks that alerts and dashboard arrive as the files of the chart say.
func watched(t *testing.T, objects map[string][]byte) {
	t.Helper()
	if raw, ok := objects["PrometheusRule/prod-kedge-hub"]; ok {
		type alert struct{ Alert, Expr, For, Severity, Summary string }
		var want []alert
		file, err := os.ReadFile(chartDir + "/alerts.yaml")
		require.NoError(t, err)
		require.NoError(t, yaml.UnmarshalStrict(file, &want))
		var rule struct {
			Spec struct {
				Groups []struct {
					Rules []struct {
						Alert, Expr, For    string
						Labels, Annotations map[string]string
					}
				}
			}
		}
		require.NoError(t, yaml.Unmarshal(raw, &rule))
		var got []alert
		for _, r := range rule.Spec.Groups[0].Rules {
			got = append(got, alert{r.Alert, r.Expr, r.For, r.Labels["severity"], r.Annotations["summary"]})
			require.True(t, strings.HasSuffix(r.Annotations["runbook_url"], "/deploy/README.md#"+strings.ToLower(r.Alert)), r.Annotations["runbook_url"])
		}
		require.Equal(t, want, got)
	}
	if raw, ok := objects["ConfigMap/prod-kedge-hub-dashboard"]; ok {
		var m corev1.ConfigMap
		require.NoError(t, yaml.Unmarshal(raw, &m))
		file, err := os.ReadFile(chartDir + "/dashboard.json")
		require.NoError(t, err)
		require.JSONEq(t, string(file), m.Data["kedge-hub.json"])
		require.Equal(t, "1", m.Labels["grafana_dashboard"])
		require.Equal(t, "kedge", m.Annotations["folder"])
	}
}

// To restore a hub needs the audit files of every replica.
func TestChart_keepsTheAuditLogOrSaysThatItIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values string
		volume bool
		warns  bool
	}{
		"embedded":                   {values: embedded, volume: true},
		"external":                   {values: external, warns: true},
		"external with volumes":      {values: external + "persistence: {perReplica: true}\n", volume: true},
		"to a collector, by an arg":  {values: external + "extraArgs: ['--audit-log-file=-']\n"},
		"to a collector, by a value": {values: external + "config: {audit-log-file: '-'}\n"},
		"to another file":            {values: external + "config: {audit-log-file: /var/lib/kedge-hub/audit.jsonl}\n", warns: true},
	} {
		objects, notes, err := render(c.values)
		require.NoError(t, err, name)
		require.Equal(t, c.warns, strings.Contains(notes, "THE AUDIT LOG IS LOST WITH EACH POD"), name)
		workload, claims := objects["Deployment/prod-kedge-hub"], 0
		var pod corev1.PodTemplateSpec
		if c.volume {
			var set appsv1.StatefulSet
			require.NoError(t, yaml.UnmarshalStrict(objects["StatefulSet/prod-kedge-hub"], &set))
			pod, claims = set.Spec.Template, len(set.Spec.VolumeClaimTemplates)
		} else {
			var deployment appsv1.Deployment
			require.NoError(t, yaml.UnmarshalStrict(workload, &deployment))
			pod = deployment.Spec.Template
		}
		require.Equal(t, c.volume, claims == 1, name)
		ephemeral := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "data" && v.EmptyDir != nil })
		require.Equal(t, !c.volume, ephemeral, name)
	}
}

func TestChart_usesTheTLSRouteOfTheCluster(t *testing.T) {
	t.Parallel()
	const group = "gateway.networking.k8s.io/"
	for name, c := range map[string]struct {
		apis []string
		want string
	}{
		"unknown":              {nil, "v1"},
		"Gateway API 1.4":      {[]string{group + "v1alpha2/TLSRoute"}, "v1alpha2"},
		"Gateway API 1.5":      {[]string{group + "v1/TLSRoute"}, "v1"},
		"experimental channel": {[]string{group + "v1alpha2/TLSRoute", group + "v1/TLSRoute"}, "v1"},
	} {
		objects, _, err := render(valueSets()["gateway"].values, c.apis...)
		require.NoError(t, err, name)
		require.Contains(t, string(objects["TLSRoute/prod-kedge-hub"]), `"apiVersion":"`+group+c.want+`"`, name)
	}
}

// The URL of the database can have a password: it is in no object of the chart.
func TestChart_reachesTheDatabase(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		valueSets()["database"].values: `{"ports":[{"port":6432,"protocol":"TCP"}],"to":[{"ipBlock":{"cidr":"10.1.0.0/16"}}]}`,
		external + "database: {existingSecret: records}\nnetworkPolicy: {enabled: true}\n": `{"ports":[{"port":5432,"protocol":"TCP"}]}`,
		external + "networkPolicy: {enabled: true}\n":                                      "",
	} {
		objects, _, err := render(values)
		require.NoError(t, err)
		var deployment appsv1.Deployment
		require.NoError(t, yaml.Unmarshal(objects["Deployment/prod-kedge-hub"], &deployment))
		env := deployment.Spec.Template.Spec.Containers[0].Env
		var policy struct{ Spec struct{ Egress []any } }
		require.NoError(t, yaml.Unmarshal(objects["NetworkPolicy/prod-kedge-hub"], &policy))
		if want == "" {
			require.Empty(t, env)
			require.Len(t, policy.Spec.Egress, 1)
			continue
		}
		require.Equal(t, "KEDGE_HUB_DATABASE", env[0].Name)
		require.Equal(t, &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "records"}, Key: "url"}, env[0].ValueFrom.SecretKeyRef)
		opened, err := yaml.Marshal(policy.Spec.Egress[1])
		require.NoError(t, err)
		require.YAMLEq(t, want, string(opened))
		var config corev1.ConfigMap
		require.NoError(t, yaml.Unmarshal(objects["ConfigMap/prod-kedge-hub"], &config))
		require.Contains(t, config.Data["hub.yaml"], "database-password-file: /etc/kedge-hub/database/password")
	}
}

func TestChart_reachesTheBillingTable(t *testing.T) {
	t.Parallel()
	objects, _, err := render(valueSets()["billing table"].values)
	require.NoError(t, err)
	var deployment appsv1.Deployment
	require.NoError(t, yaml.Unmarshal(objects["Deployment/prod-kedge-hub"], &deployment))
	env := deployment.Spec.Template.Spec.Containers[0].Env
	require.Len(t, env, 2)
	require.Equal(t, "KEDGE_HUB_BILLING_DATABASE", env[1].Name)
	require.Equal(t, &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "finance"}, Key: "url"}, env[1].ValueFrom.SecretKeyRef)
	var policy struct{ Spec struct{ Egress []any } }
	require.NoError(t, yaml.Unmarshal(objects["NetworkPolicy/prod-kedge-hub"], &policy))
	opened, err := yaml.Marshal(policy.Spec.Egress[2])
	require.NoError(t, err)
	require.YAMLEq(t, `{"ports":[{"port":6433,"protocol":"TCP"}],"to":[{"ipBlock":{"cidr":"10.2.0.0/16"}}]}`, string(opened))
	var config corev1.ConfigMap
	require.NoError(t, yaml.Unmarshal(objects["ConfigMap/prod-kedge-hub"], &config))
	require.Contains(t, config.Data["hub.yaml"], "billing-database-password-file: /etc/kedge-hub/billing-database/password")
	require.Contains(t, config.Data["hub.yaml"], "billing-table: hours")
}

// The environment has precedence over the file of the chart, and the image sets some flags in it.
func TestChart_setsTheFlagsThatTheImageSets(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../deploy/image/main.go")
	require.NoError(t, err)
	variables := regexp.MustCompile(`"(KEDGE_HUB_\w+)=`).FindAllStringSubmatch(string(source), -1)
	require.Len(t, variables, 4)
	for _, v := range variables {
		flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(v[1], "KEDGE_HUB_"), "_", "-"))
		for _, value := range []string{"/elsewhere", ""} {
			objects, _, err := render(embedded + "config: {" + flag + ": '" + value + "'}\n")
			if err != nil {
				require.ErrorContains(t, err, "config."+flag+": another value of the chart sets it")
				continue
			}
			require.Contains(t, podOf(t, objects).Containers[0].Env, corev1.EnvVar{Name: v[1], Value: value}, flag)
		}
	}
}

func TestChart_notesSayWhoCanLogIn(t *testing.T) {
	const (
		tokens = embedded + "tokens: {existingSecret: tokens}\n"
		oidc   = embedded + "oidc: {issuerURL: https://login.example.com, clientID: kedge}\n"
	)
	for name, c := range map[string]struct {
		values  string
		says    []string
		silence string
	}{
		"nobody":                     {embedded, []string{"Nobody can log in"}, "kedge login"},
		"a token file":               {tokens, []string{"--token-file FILE", "https://hub.example.com/ui/"}, "Nobody"},
		"an identity provider":       {oidc, []string{"--ca-file ca.crt\n"}, "--token-file"},
		"closed, without an admin":   {oidc + "config: {registration: closed}\n", []string{"registration is closed", "config.admin-user"}, "Nobody can log in"},
		"approval, without an admin": {oidc + "config: {registration: approval}\n", []string{"registration is approval"}, "Nobody can log in"},
		"closed, with an admin":      {oidc + "config: {registration: closed, admin-user: [\"https://login.example.com#1\"], portal: false}\n", []string{"kedge login"}, "/ui/"},
		"closed, with a group":       {oidc + "config: {registration: closed, admin-group: [\"kedge:ops\"]}\n", []string{"kedge login"}, "Nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			_, notes, err := render(c.values)
			require.NoError(t, err)
			for _, text := range c.says {
				require.Contains(t, notes, text)
			}
			require.NotContains(t, notes, c.silence)
		})
	}
}

func TestChart_refusesWhatCannotRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ values, want string }{
		"no URL":                  {"{}", "externalURL"},
		"a URL with a path":       {"externalURL: https://hub.example.com/x", "externalURL"},
		"two embedded kcps":       {embedded + "replicaCount: 2", "exactly one replica"},
		"an external kcp unnamed": {embedded + "kcp: {embedded: false}", "existingSecret"},
		"both kcps":               {embedded + "kcp: {embedded: true, existingSecret: x}", "existingSecret"},
		"no Secret for TLS":       {embedded + "tls: {mode: existingSecret}", "existingSecret"},
		"no issuer for TLS":       {embedded + "tls: {mode: certManager}", "issuerRef"},
		"an issuer, no client":    {embedded + "oidc: {issuerURL: 'https://login.example.com'}", "clientID"},
		"an issuer without TLS":   {embedded + "ci: {issuers: ['http://gitlab.example.com']}", "issuers"},
		"a CA of no issuer":       {embedded + "ci: {caExistingSecret: ci-ca}", "issuers"},
		"the latest image":        {embedded + "image: {tag: latest}", "tag"},
		"an unknown value":        {embedded + "replicas: 2", "replicas"},
		"a flag of the chart's":   {embedded + "config: {token-file: /x}", "config.token-file"},
		"a database twice":        {embedded + "database: {existingSecret: a}\nconfig: {database: none}", "config.database"},
		"SQLite for replicas":     {external + "config: {database: 'sqlite:/var/lib/kedge-hub/records.db'}", "config.database"},
		"SQLite for volumes":      {external + "persistence: {perReplica: true}\nconfig: {database: 'sqlite:/x'}", "config.database"},
		"SQLite beside a successor": {
			external + "replicaCount: 1\nconfig: {leader-elect: false, database: 'sqlite:/x'}", "config.database",
		},
		"SQLite with an election": {
			external + "replicaCount: 1\npersistence: {perReplica: true}\nconfig: {database: 'sqlite:/x'}", "config.database",
		},
		"no election":              {external + "config: {leader-elect: false}", "config.leader-elect"},
		"a password elsewhere":     {embedded + "config: {database-password-file: /x}", "database.existingSecret"},
		"a billing database twice": {embedded + "billingDatabase: {existingSecret: a}\nconfig: {billing-database: b, billing-table: c}", "config.billing-database"},
		"a billing database alone": {embedded + "billingDatabase: {existingSecret: a}", "config.billing-table"},
		"a gateway without parent": {embedded + "gateway: {enabled: true}", "parentRefs"},
		"a gateway without CA":     {embedded + "gateway: {enabled: true, mode: reencrypt, parentRefs: [{name: a}]}", "caConfigMap"},
	} {
		_, _, err := render(c.values)
		require.ErrorContains(t, err, c.want, name)
	}
	for _, alone := range []string{embedded, external + "replicaCount: 1\npersistence: {perReplica: true}\n"} {
		_, _, err := render(alone + "config: {leader-elect: false, database: 'sqlite:/var/lib/kedge-hub/records.db'}\n")
		require.NoError(t, err, "SQLite is for one replica")
	}
}
