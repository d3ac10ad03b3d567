package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/pkg/server"
)

// What does not fit together is refused by the name of the flag, before anything is read or written.
func TestRestoreModes_refuseWhatDoesNotFitTogether(t *testing.T) {
	t.Parallel()
	const at = "2026-11-24T02:00:00Z"
	replays := server.RestoreOptions{Replay: []string{"rights.jsonl"}}
	for name, c := range map[string]struct {
		modes restoreModes
		args  []string
		given server.RestoreOptions
		says  string
	}{
		"a file":                        {args: []string{"backup.tar.gz"}, given: replays},
		"external":                      {modes: restoreModes{external: true, backupAt: at}, given: replays},
		"report":                        {modes: restoreModes{report: true}},
		"release":                       {modes: restoreModes{release: true}},
		"nothing":                       {says: "name the file"},
		"external without a time":       {modes: restoreModes{external: true}, says: "--backup-at: with --external, give the time"},
		"external with half a time":     {modes: restoreModes{external: true, backupAt: "2026-11-24"}, says: "--backup-at"},
		"external with a file":          {modes: restoreModes{external: true, backupAt: at}, args: []string{"a"}, says: "--external"},
		"a file with a time":            {modes: restoreModes{backupAt: at}, args: []string{"a"}, says: "--backup-at"},
		"release with a file":           {modes: restoreModes{release: true}, args: []string{"a"}, says: "--release"},
		"release and report":            {modes: restoreModes{release: true, report: true}, says: "--release"},
		"report of an external restore": {modes: restoreModes{report: true, external: true}, says: "--report"},
		"release with a replay":         {modes: restoreModes{release: true}, given: replays, says: "--release"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.modes.check(c.args, c.given)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			if c.modes.external {
				require.Equal(t, time.Date(2026, 11, 24, 2, 0, 0, 0, time.UTC), got)
			}
		})
	}
}

// Shards are saved one after the other. What ended between the first snapshot and the others is in none of it.
func TestRestore_asksForTheTimeOfTheEarliestSnapshot(t *testing.T) {
	t.Parallel()
	cmd := restoreCommand(&server.Options{})
	require.Contains(t, cmd.Flags().Lookup("backup-at").Usage, "when the earliest snapshot of all shards of kcp was begun")
	guide, err := os.ReadFile("../../deploy/README.md")
	require.NoError(t, err)
	require.Contains(t, string(guide), "`--backup-at` is when the earliest snapshot of all shards was **begun**")
	require.Contains(t, string(guide), "a restore asks for this time, that of the earliest snapshot of all shards")
}

// restorePod returns the objects of the example.
func restorePod(t *testing.T) (claim corev1.PersistentVolumeClaim, pod corev1.Pod, text string) {
	t.Helper()
	raw, err := os.ReadFile("../../deploy/examples/restore-pod.yaml")
	require.NoError(t, err)
	first, second, ok := strings.Cut(string(raw), "\n---\n")
	require.True(t, ok)
	require.NoError(t, yaml.UnmarshalStrict([]byte(first), &claim))
	require.NoError(t, yaml.UnmarshalStrict([]byte(second), &pod))
	return claim, pod, second
}

// The example is what an operator has after a loss: it must be objects of Kubernetes, and a command line of this program.
func TestRestore_hasAPodForKubernetes(t *testing.T) {
	t.Parallel()
	claim, pod, text := restorePod(t)
	require.Equal(t, int64(65532), *pod.Spec.SecurityContext.RunAsUser, "the user of the image")
	volumes := map[string]corev1.Volume{}
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = v
	}
	require.Equal(t, claim.Name, volumes["data"].PersistentVolumeClaim.ClaimName)
	mounted := map[string]string{}
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		require.Contains(t, volumes, m.Name)
		mounted[m.Name] = m.MountPath
	}
	for _, m := range pod.Spec.InitContainers[0].VolumeMounts {
		require.Equal(t, mounted[m.Name], m.MountPath, "both containers see the files")
	}
	cmd, rest, err := command().Find(pod.Spec.Containers[0].Args)
	require.NoError(t, err)
	require.Equal(t, "restore", cmd.Name())
	require.NoError(t, cmd.ParseFlags(rest))
	require.NoError(t, cmd.Args(cmd, cmd.Flags().Args()))
	require.Equal(t, mounted["data"], cmd.Flag("data-dir").Value.String())
	require.Equal(t, []string{mounted["restore"] + "/backup.tar.gz"}, cmd.Flags().Args())

	guide, err := os.ReadFile("../../deploy/README.md")
	require.NoError(t, err)
	for _, file := range []string{"/restore/backup.tar.gz", "/restore/audit", "/restore/complete"} {
		require.Contains(t, text, file)
		require.Contains(t, string(guide), file)
	}
}

// The command line is complete with the environment of the image. The command looks for the files, which are not here.
func TestRestore_runsInThePodWithTheEnvironmentOfTheImage(t *testing.T) { //nolint:paralleltest // It sets the environment.
	setImageEnvironment(t)
	_, pod, _ := restorePod(t)
	dir := t.TempDir()
	args := make([]string, 0, len(pod.Spec.Containers[0].Args))
	for _, arg := range pod.Spec.Containers[0].Args {
		args = append(args, strings.NewReplacer("/var/lib/kedge-hub", dir+"/data", "/restore/", dir+"/").Replace(arg))
	}
	err := run(t, args...)
	require.NotErrorIs(t, err, errUsage)
	require.ErrorContains(t, err, "--replay: ")
	require.ErrorContains(t, err, dir+"/audit")
}
