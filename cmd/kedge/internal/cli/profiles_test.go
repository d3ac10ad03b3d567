package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProfiles_keepOneLoginPerHubAndPerson(t *testing.T) {
	t.Parallel()
	b, other := newBed(t), newBed(t)
	b.login(t)
	name := strings.ReplaceAll(strings.TrimPrefix(b.URL, "https://"), ":", "-")
	b.me = `{"name":"ann"}`
	code, out, errOut := b.run(t, "login", "--server", b.URL, "--ca-file", b.file("ca.crt"), "--token-file", b.file("token"), "--profile", "work")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "as ann")
	other.dir, other.env = b.dir, b.env
	other.me = `{"name":"alan"}`
	require.NoError(t, os.WriteFile(b.file("other.crt"), other.ca(), 0o600))
	code, _, errOut = other.run(t, "login", "--server", other.URL, "--ca-file", b.file("other.crt"), "--token-file", b.file("token"), "--profile", "zoo")
	require.Zero(t, code, errOut)

	fields := func(out string) string { return strings.Join(strings.Fields(out), " ") }
	_, out, _ = b.run(t, "profiles")
	require.Equal(t, "NAME HUB PERSON CURRENT "+name+" "+b.URL+" alice false work "+b.URL+" ann false zoo "+other.URL+" alan true", fields(out))
	code, out, errOut = b.run(t, "profiles", "use", "work")
	require.Zero(t, code, errOut)
	require.Equal(t, "Working at "+b.URL+" as ann.\n", out)
	for args, hub := range map[string]*bed{
		"whoami": b, "whoami --profile zoo": other, "whoami --server " + other.URL: other, "whoami --server " + b.URL + "/": b,
		"whoami --profile zoo --server " + other.URL: other,
	} {
		before := hub.hits["GET /api/users/me"]
		code, _, errOut := b.run(t, strings.Fields(args)...)
		require.Zero(t, code, errOut)
		require.Equal(t, before+1, hub.hits["GET /api/users/me"], args)
	}
	b.env["KEDGE_PROFILE"] = "zoo"
	before := other.hits["GET /api/users/me"]
	code, _, errOut = b.run(t, "whoami")
	require.Zero(t, code, errOut)
	require.Equal(t, before+1, other.hits["GET /api/users/me"])
	before = b.hits["GET /api/users/me"]
	code, _, errOut = b.run(t, "whoami", "--server", b.URL)
	require.Equal(t, 1, code, "the hub that the command line names counts more than the variable")
	require.Contains(t, errOut, "there are several logins to "+b.URL)
	b.env["KEDGE_PROFILE"] = "work"
	code, _, errOut = b.run(t, "whoami", "--server", b.URL)
	require.Zero(t, code, errOut)
	require.Equal(t, before+1, b.hits["GET /api/users/me"])
}

func TestProfiles_ofAnotherHubOrPersonAreNeverUsedInstead(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	login := []string{"login", "--server", b.URL, "--ca-file", b.file("ca.crt"), "--token-file", b.file("token"), "--profile"}
	for _, name := range []string{"ann", "bob"} {
		code, _, errOut := b.run(t, append(login, name)...)
		require.Zero(t, code, errOut)
	}
	code, _, errOut := b.run(t, "logout")
	require.Zero(t, code, errOut)
	asked := b.hits["GET /api/users/me"]
	for args, c := range map[string]struct {
		code int
		says string
	}{
		"whoami":                                     {1, "no login is chosen; to see what there is and choose one, run: kedge profiles"},
		"whoami --profile bob":                       {1, "not logged in with the profile bob; run: kedge login --server URL --profile bob"},
		"whoami --profile bob --server " + b.URL:     {1, "not logged in with the profile bob; run: kedge login --server " + b.URL + " --profile bob"},
		"whoami --profile ann --server https://else": {1, "the profile ann is a login to " + b.URL},
		"whoami --server https://else":               {1, "not logged in; run: kedge login --server https://else"},
		"whoami --server " + b.URL:                   {1, "there are several logins to " + b.URL + "; give --profile with one of: "},
		"whoami --profile ../x":                      {2, "--profile: give a name"},
		"profiles use bob":                           {1, `there is no profile "bob"`},
		"profiles use":                               {2, "kedge profiles use needs the name of a profile"},
	} {
		code, out, errOut := b.run(t, strings.Fields(args)...)
		require.Equal(t, c.code, code, args)
		require.Empty(t, out, args)
		require.Contains(t, errOut, "kedge: "+c.says, args)
		require.Equal(t, 1, strings.Count(errOut, "\n"), args)
	}
	require.Equal(t, asked, b.hits["GET /api/users/me"])
	code, _, errOut = b.run(t, "whoami", "--profile", "ann")
	require.Zero(t, code, errOut)
}

func TestProfiles_loginDoesNotOverwriteTheLoginToAnotherHub(t *testing.T) {
	t.Parallel()
	b, other := newBed(t), newBed(t)
	b.login(t)
	name := strings.ReplaceAll(strings.TrimPrefix(b.URL, "https://"), ":", "-")
	code, _, errOut := b.run(t, "login", "--server", other.URL, "--ca-file", other.file("ca.crt"), "--token-file", b.file("token"), "--profile", name)
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "kedge: the profile "+name+" is a login to "+b.URL)
	code, _, errOut = b.run(t, "whoami")
	require.Zero(t, code, errOut)
	require.Equal(t, 2, b.hits["GET /api/users/me"])
}

func TestProfiles_aBrokenFileIsSetAsideAndMeansLogInAgain(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	path := b.file(".config/kedge/config.json")
	require.NoError(t, os.Truncate(path, 20))
	code, out, errOut := b.run(t, "orgs")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Equal(t, "kedge: "+path+" cannot be understood and was renamed to "+path+".broken; log in again\n", errOut)
	code, _, errOut = b.run(t, "orgs")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "not logged in; run: kedge login")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	b.login(t)
	code, _, errOut = b.run(t, "whoami")
	require.Zero(t, code, errOut)
	left, err := filepath.Glob(path + ".broken*")
	require.NoError(t, err)
	require.Len(t, left, 2)
}
