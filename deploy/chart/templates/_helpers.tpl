{{- define "kedge-hub.name" -}}
{{- if contains "kedge-hub" .Release.Name -}}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{- else -}}{{ printf "%s-kedge-hub" .Release.Name | trunc 52 | trimSuffix "-" }}{{- end -}}
{{- end }}

{{- define "kedge-hub.selector" -}}
app.kubernetes.io/name: kedge-hub
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kedge-hub.labels" -}}
{{ include "kedge-hub.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "kedge-hub.host" -}}
{{- (urlParse .Values.externalURL).hostname -}}
{{- end }}

{{- /* The Secret with the serving certificate. */ -}}
{{- define "kedge-hub.tlsSecret" -}}
{{- if eq .Values.tls.mode "existingSecret" -}}{{ .Values.tls.existingSecret }}{{- else -}}{{ include "kedge-hub.name" . }}-tls{{- end -}}
{{- end }}

{{- /* Not empty if each pod has a volume of its own. */ -}}
{{- define "kedge-hub.stateful" -}}
{{- if or .Values.kcp.embedded .Values.persistence.perReplica }}true{{ end -}}
{{- end }}

{{- define "kedge-hub.replicas" -}}
{{- if .Values.kcp.embedded }}1{{ else }}{{ .Values.replicaCount | default 2 }}{{ end -}}
{{- end }}

{{- /* Not empty if there is never more than one Pod. A Deployment of one replica starts the next one before it ends the last. */ -}}
{{- define "kedge-hub.alone" -}}
{{- if or .Values.kcp.embedded (and .Values.persistence.perReplica (eq (int (include "kedge-hub.replicas" .)) 1)) }}true{{ end -}}
{{- end }}

{{- /* The seconds for which a Pod that is to end goes on serving; 0 if no other one serves meanwhile, or Kubernetes cannot wait. */ -}}
{{- define "kedge-hub.preStopSeconds" -}}
{{- if and (not (include "kedge-hub.alone" .)) (semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version) }}10{{ else }}0{{ end -}}
{{- end }}

{{- /* Mistakes that the schema cannot tell. */ -}}
{{- define "kedge-hub.validate" -}}
{{- $name := include "kedge-hub.name" . }}
{{- $old := lookup "apps/v1" "StatefulSet" .Release.Namespace $name }}
{{- if and (include "kedge-hub.stateful" .) $old (ne (dig "spec" "podManagementPolicy" "Parallel" $old) "Parallel") }}
{{- $delete := printf "kubectl -n %s delete statefulset %s --cascade=orphan" .Release.Namespace $name }}
{{- $why := printf "the StatefulSet %s has podManagementPolicy OrderedReady, which Kubernetes cannot change" $name }}
{{- fail (printf "%s: run %s, which keeps the Pod and its volume, and then this command again" $why $delete) }}
{{- end }}
{{- if and .Values.kcp.embedded (ne (int (.Values.replicaCount | default 1)) 1) }}
{{- fail "replicaCount: an embedded kcp has exactly one replica; set kcp.embedded=false and kcp.existingSecret for more" }}
{{- end }}
{{- range $key := list "apiVersion" "kind" "data-dir" "listen-address" "metrics-listen-address" "external-url" "kcp-kubeconfig" "tls-cert-file" "tls-key-file" "tls-ca-file" "token-file" "oidc-issuer-url" "oidc-client-id" "oidc-client-secret-file" "oidc-ca-file" "ci-issuer" "ci-ca-file" "session-key-file" }}
{{- if hasKey $.Values.config $key }}
{{- fail (printf "config.%s: another value of the chart sets it; see values.yaml" $key) }}
{{- end }}
{{- end }}
{{- if hasKey .Values.config "database-password-file" }}
{{- fail "config.database-password-file: give database.existingSecret, which has url and password" }}
{{- end }}
{{- if and .Values.database.existingSecret (hasKey .Values.config "database") }}
{{- fail "config.database: database.existingSecret sets it" }}
{{- end }}
{{- $elects := ne (toString (index .Values.config "leader-elect")) "false" }}
{{- if and (hasPrefix "sqlite:" (toString (index .Values.config "database"))) (not .Values.kcp.embedded) (or $elects (not (include "kedge-hub.alone" .))) }}
{{- $alone := "replicaCount: 1, persistence.perReplica and config.leader-elect: false" }}
{{- fail (printf "config.database: SQLite is for one replica; give a PostgreSQL in database.existingSecret, or set %s" $alone) }}
{{- end }}
{{- if and (not $elects) (not (include "kedge-hub.alone" .)) }}
{{- fail "config.leader-elect: false is for a hub of which there is never more than one; set replicaCount: 1 and persistence.perReplica with it" }}
{{- end }}
{{- if hasKey .Values.config "billing-database-password-file" }}
{{- fail "config.billing-database-password-file: give billingDatabase.existingSecret, which has url and password" }}
{{- end }}
{{- if and .Values.billingDatabase.existingSecret (or (hasKey .Values.config "billing-database") (not (hasKey .Values.config "billing-table"))) }}
{{- fail "config.billing-database: billingDatabase.existingSecret sets it, and needs config.billing-table" }}
{{- end }}
{{- end }}

{{- /* The flags that the chart sets. */ -}}
{{- define "kedge-hub.config" -}}
apiVersion: config.kedge.faros.sh/v1alpha1
kind: HubConfiguration
data-dir: /var/lib/kedge-hub
listen-address: 0.0.0.0:9443
metrics-listen-address: 0.0.0.0:9464
external-url: {{ .Values.externalURL | quote }}
{{- if not (hasKey .Values.config "log-format") }}
log-format: json
{{- end }}
{{- if not .Values.kcp.embedded }}
kcp-kubeconfig: /etc/kedge-hub/kcp/kubeconfig
{{- end }}
tls-cert-file: /etc/kedge-hub/tls/tls.crt
tls-key-file: /etc/kedge-hub/tls/tls.key
tls-ca-file: /etc/kedge-hub/tls/ca.crt
{{- if .Values.tokens.existingSecret }}
token-file: /etc/kedge-hub/tokens/tokens.csv
{{- end }}
{{- with .Values.oidc.issuerURL }}
oidc-issuer-url: {{ . | quote }}
oidc-client-id: {{ $.Values.oidc.clientID | quote }}
{{- if $.Values.oidc.existingSecret }}
oidc-client-secret-file: /etc/kedge-hub/oidc/client-secret
{{- end }}
{{- if $.Values.oidc.caExistingSecret }}
oidc-ca-file: /etc/kedge-hub/oidc-ca/ca.crt
{{- end }}
{{- end }}
{{- with .Values.ci.issuers }}
ci-issuer: {{ toJson . }}
{{- if $.Values.ci.caExistingSecret }}
ci-ca-file: /etc/kedge-hub/ci-ca/ca.crt
{{- end }}
{{- end }}
{{- if .Values.sessionKeys.existingSecret }}
session-key-file: /etc/kedge-hub/sessions/keys
{{- end }}
{{- if .Values.database.existingSecret }}
database-password-file: /etc/kedge-hub/database/password
{{- end }}
{{- if .Values.billingDatabase.existingSecret }}
billing-database-password-file: /etc/kedge-hub/billing-database/password
{{- end }}
{{- with .Values.config }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The Secrets that are mounted below /etc/kedge-hub, by folder. Without subPath, so that changes reach the hub. */ -}}
{{- define "kedge-hub.secrets" -}}
{{- $secrets := dict }}
{{- if not .Values.kcp.embedded }}{{ $_ := set $secrets "kcp" .Values.kcp.existingSecret }}{{ end }}
{{- $_ := set $secrets "tls" (include "kedge-hub.tlsSecret" .) }}
{{- with .Values.tokens.existingSecret }}{{ $_ := set $secrets "tokens" . }}{{ end }}
{{- with .Values.oidc.existingSecret }}{{ $_ := set $secrets "oidc" . }}{{ end }}
{{- with .Values.oidc.caExistingSecret }}{{ $_ := set $secrets "oidc-ca" . }}{{ end }}
{{- with .Values.ci.caExistingSecret }}{{ $_ := set $secrets "ci-ca" . }}{{ end }}
{{- with .Values.sessionKeys.existingSecret }}{{ $_ := set $secrets "sessions" . }}{{ end }}
{{- with .Values.database.existingSecret }}{{ $_ := set $secrets "database" . }}{{ end }}
{{- with .Values.billingDatabase.existingSecret }}{{ $_ := set $secrets "billing-database" . }}{{ end }}
{{- toJson $secrets }}
{{- end }}

{{- define "kedge-hub.pod" -}}
metadata:
  labels:
    {{- include "kedge-hub.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    checksum/config: {{ include "kedge-hub.config" . | sha256sum }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "kedge-hub.name" . }}
  automountServiceAccountToken: false
  # Kubernetes would set KEDGE_HUB_PORT and others for a Service of this name.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ add .Values.terminationGracePeriodSeconds (include "kedge-hub.preStopSeconds" .) }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: kedge-hub
      image: {{ if .Values.image.digest }}{{ printf "%s@%s" .Values.image.repository .Values.image.digest }}{{ else }}{{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}{{ end }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - --config=/etc/kedge-hub/config/hub.yaml
        {{- range .Values.extraArgs }}
        - {{ . | quote }}
        {{- end }}
      {{- if or .Values.database.existingSecret .Values.billingDatabase.existingSecret .Values.extraEnv (hasKey .Values.config "downloads-dir") }}
      env:
        {{- with .Values.database.existingSecret }}
        - name: KEDGE_HUB_DATABASE
          valueFrom:
            secretKeyRef: {name: {{ . }}, key: url}
        {{- end }}
        {{- with .Values.billingDatabase.existingSecret }}
        - name: KEDGE_HUB_BILLING_DATABASE
          valueFrom:
            secretKeyRef: {name: {{ . }}, key: url}
        {{- end }}
        {{- if hasKey .Values.config "downloads-dir" }}
        # The image sets it, and the environment has precedence over the file.
        - name: KEDGE_HUB_DOWNLOADS_DIR
          value: {{ index .Values.config "downloads-dir" | toString | quote }}
        {{- end }}
        {{- with .Values.extraEnv }}{{ toYaml . | nindent 8 }}{{ end }}
      {{- end }}
      ports:
        - name: https
          containerPort: 9443
        - name: metrics
          containerPort: 9464
      {{- with include "kedge-hub.preStopSeconds" . | int }}
      # The hub accepts no connection after SIGTERM, and proxies learn only after seconds that the Pod ends.
      lifecycle:
        preStop:
          sleep: {seconds: {{ . }}}
      {{- end }}
      startupProbe:
        httpGet: {path: /livez, port: https, scheme: HTTPS}
        periodSeconds: 2
        failureThreshold: 150
      livenessProbe:
        httpGet: {path: /livez, port: https, scheme: HTTPS}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: https, scheme: HTTPS}
        periodSeconds: 5
        timeoutSeconds: 5
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - name: data
          mountPath: /var/lib/kedge-hub
        - name: tmp
          mountPath: /tmp
        - name: config
          mountPath: /etc/kedge-hub/config
          readOnly: true
        {{- range $folder, $secret := include "kedge-hub.secrets" . | fromJson }}
        - name: {{ $folder }}
          mountPath: /etc/kedge-hub/{{ $folder }}
          readOnly: true
        {{- end }}
        {{- with .Values.extraVolumeMounts }}{{ toYaml . | nindent 8 }}{{ end }}
  volumes:
    - name: tmp
      emptyDir: {}
    - name: config
      configMap:
        name: {{ include "kedge-hub.name" . }}
    {{- if not (include "kedge-hub.stateful" .) }}
    # The audit log in it ends with the pod. persistence.perReplica keeps it.
    - name: data
      emptyDir: {}
    {{- end }}
    {{- range $folder, $secret := include "kedge-hub.secrets" . | fromJson }}
    - name: {{ $folder }}
      secret:
        secretName: {{ $secret }}
        defaultMode: 0440
    {{- end }}
    {{- with .Values.extraVolumes }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- if not .Values.kcp.embedded }}
  topologySpreadConstraints:
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "kedge-hub.selector" $ | nindent 10 }}
    {{- end }}
  {{- end }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
{{- end }}
