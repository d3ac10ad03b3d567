package cli_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhy_sendsTheQuestion(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]url.Values{
		"why get widgets":                                            {"verb": {"get"}, "resource": {"widgets"}},
		"why get widgets.example.org --as bob":                       {"verb": {"get"}, "resource": {"widgets"}, "group": {"example.org"}, "user": {"bob"}},
		"why create serviceaccounts./token ci -n web":                {"verb": {"create"}, "resource": {"serviceaccounts"}, "subresource": {"token"}, "group": {""}, "name": {"ci"}, "namespace": {"web"}},
		"why get widgets --bot 7c1f5a0e-0b53-5e0c-9d7b-6f1f6b8f2a11": {"verb": {"get"}, "resource": {"widgets"}, "bot": {"7c1f5a0e-0b53-5e0c-9d7b-6f1f6b8f2a11"}},
	} {
		b := newBed(t)
		b.inWorkspace(t)
		calls := b.record(t, "GET "+wsPath+"/why", http.StatusOK, `{"allowed":true,"user":"alice","verb":"get","group":"","resource":"widgets","through":[],"missing":[]}`)
		code, _, errOut := b.run(t, strings.Fields(args)...)
		require.Zero(t, code, errOut)
		require.Len(t, *calls, 1)
		sent, err := url.ParseQuery((*calls)[0].query)
		require.NoError(t, err)
		require.Equal(t, want, sent, args)
	}
	for _, args := range []string{"why", "why get", "why get widgets a b", "why get widgets --as bob --bot x"} {
		b := newBed(t)
		b.inWorkspace(t)
		code, _, _ := b.run(t, strings.Fields(args)...)
		require.Equal(t, 2, code, args)
	}
}

func TestWhy_saysWhatWouldMendIt(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(73 * time.Hour).UTC().Format(time.RFC3339)
	in := " --org " + orgUUID + " --workspace " + wsUUID
	for name, tc := range map[string]struct {
		args, answer string
		want         []string
	}{
		"allowed": {
			"why get widgets", `{"allowed":true,"user":"alice","verb":"get","group":"g.example.org","resource":"widgets","role":"member","through":[{"through":"Membership","role":"member","expiresAt":"` + soon + `"}],"missing":[]}`,
			[]string{"alice may get widgets.g.example.org in this workspace.", "The role there is member, by a membership in the workspace, which ends in 3 days."},
		},
		"a role too low": {
			"why create roles --as bob -n web", `{"allowed":false,"user":"bob","verb":"create","group":"","resource":"roles","namespace":"web","role":"viewer","through":[{"through":"DefaultAccess","role":"viewer"}],"missing":[{"code":"RoleTooLow","message":"it needs the role admin","role":"admin"}]}`,
			[]string{"bob may not create roles in the namespace web of this workspace.", "RoleTooLow: it needs the role admin.", "To change that, run: kedge workspaces members add bob --role admin" + in},
		},
		"one's own role": {
			"why create roles", `{"allowed":false,"user":"alice","verb":"create","group":"","resource":"roles","role":"viewer","through":[{"through":"Membership","role":"viewer"}],"missing":[{"code":"RoleTooLow","message":"x","role":"admin"}]}`,
			[]string{"An admin of the workspace can change that with: kedge workspaces members set-role alice admin" + in},
		},
		"a bot": {
			"why create roles --bot u", `{"allowed":false,"bot":"u","verb":"create","group":"","resource":"roles","role":"viewer","through":[{"through":"Bot","role":"viewer"}],"missing":[{"code":"RoleTooLow","message":"x","role":"admin"}]}`,
			[]string{"the bot u may not create roles", "kedge bots set-role u admin" + in},
		},
		"nobody there": {
			"why get widgets --as bob", `{"allowed":false,"user":"bob","verb":"get","group":"","resource":"widgets","through":[],"missing":[{"code":"NotAMember","message":"x"}]}`,
			[]string{"kedge workspaces members add bob" + in},
		},
		"a provider, with a name that moves the cursor": {
			"why get widgets", `{"allowed":false,"user":"alice","verb":"get","group":"","resource":"widgets","role":"admin","through":[],"missing":[{"code":"ProviderNotEnabled","message":"\u001b[2Jx","slug":"w"}]}`,
			[]string{"ProviderNotEnabled: \ufffd[2Jx.", "To change that, run: kedge providers enable w" + in},
		},
		"sudo": {
			"why create roles", `{"allowed":false,"user":"alice","verb":"create","group":"","resource":"roles","role":"member","sudo":true,"through":[],"missing":[{"code":"NeedsSudo","message":"x","role":"admin"}]}`,
			[]string{"To change that, run: kedge sudo" + in + " -- kubectl create roles"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.inWorkspace(t)
			b.answer("GET "+wsPath+"/why", http.StatusOK, tc.answer)
			code, out, errOut := b.run(t, strings.Fields(tc.args)...)
			require.Zero(t, code, errOut)
			for _, want := range tc.want {
				require.Contains(t, out, want)
			}
		})
	}
}
