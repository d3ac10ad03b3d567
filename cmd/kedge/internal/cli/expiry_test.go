package cli_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMembers_showWhatEndsSoonInWords(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for end, want := range map[string]string{
		now.Add(-time.Hour).UTC().Format(time.RFC3339): "ended", now.Add(30 * time.Second).UTC().Format(time.RFC3339): "ends in 1 min",
		now.Add(5*time.Hour + time.Minute).UTC().Format(time.RFC3339): "ends in 5 hours",
		now.Add(73 * time.Hour).UTC().Format(time.RFC3339):            "ends in 3 days",
		now.Add(30 * 24 * time.Hour).UTC().Format(time.RFC3339):       now.Add(30 * 24 * time.Hour).UTC().Format(time.RFC3339),
		"": "",
	} {
		b := newBed(t)
		b.inWorkspace(t)
		b.answer("GET "+orgPath+"/members", http.StatusOK, `{"items":[`+strings.Replace(bob, `"active"`, `"expiresAt":`+strings.Replace(`"`+end+`"`, `""`, "null", 1)+`,"active"`, 1)+`],"continue":""}`)
		code, out, errOut := b.run(t, "members")
		require.Zero(t, code, errOut)
		require.Contains(t, out, "true     "+want+"\n")
	}
}

func TestMembers_setExpirySendsAnEndOrNone(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]time.Duration{
		"members set-expiry bob 30d": 30 * 24 * time.Hour, "workspaces members set-expiry bob 12h": 12 * time.Hour,
		"members set-expiry bob never": 0, "members add bob --expires-in 2d": 48 * time.Hour, "workspaces members add bob --expires-in 90m": 90 * time.Minute,
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.inWorkspace(t)
			target, answer := orgPath, bob
			if strings.HasPrefix(args, "workspaces") {
				target, answer = wsPath, bobInWeb
			}
			added := b.record(t, "POST "+target+"/members", http.StatusCreated, answer)
			set := b.record(t, "PATCH "+target+"/members/bob", http.StatusOK, answer)
			code, _, errOut := b.run(t, strings.Fields(args)...)
			require.Zero(t, code, errOut)
			calls := append(*added, *set...)
			require.Len(t, calls, 1)
			var body map[string]any
			require.NoError(t, json.Unmarshal([]byte(calls[0].body), &body))
			require.Contains(t, body, "expiresAt")
			if want == 0 {
				require.JSONEq(t, `{"expiresAt":null}`, calls[0].body)
				return
			}
			end, err := time.Parse(time.RFC3339, body["expiresAt"].(string))
			require.NoError(t, err)
			require.WithinDuration(t, time.Now().Add(want), end, time.Minute)
		})
	}
	b := newBed(t)
	b.inWorkspace(t)
	exact := b.record(t, "PATCH "+orgPath+"/members/bob", http.StatusOK, bob)
	code, _, errOut := b.run(t, "members", "set-expiry", "bob", "2030-01-31T18:00:00Z")
	require.Zero(t, code, errOut)
	require.JSONEq(t, `{"expiresAt":"2030-01-31T18:00:00Z"}`, (*exact)[0].body)
	for _, args := range []string{"members set-expiry bob", "members set-expiry bob soon", "members set-expiry bob -3d", "members add bob --expires-in soon"} {
		code, _, _ := b.run(t, strings.Fields(args)...)
		require.Equal(t, 2, code, args)
	}
}
