package cli_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/cli"
)

const (
	entryUUID = "1781b49f-55f1-5980-a3d4-e2c16492068b"
	entryPath = orgPath + "/catalog/" + entryUUID
	anEntry   = `{"uuid":"` + entryUUID + `","slug":"widgets","displayName":"Widgets","scope":"Org","version":"v1","phase":"Ready","workspaces":3,"createdAt":"2026-11-02T00:00:00Z","createdBy":"alice",` +
		`"apiExport":{"path":"root:kedge:orgs:o:w","name":"widgets.example.org"},"claims":[{"group":"","resource":"configmaps","verbs":["get","list"],"dangerous":false},` +
		`{"group":"","resource":"secrets","verbs":["*"],"dangerous":true}],"resources":[{"group":"widgets.example.org","resource":"widgets"}]}`
	spec = `"slug":"widgets","displayName":"Widgets","apiExport":{"path":"root:kedge:providers:widgets","name":"widgets.example.org"}`
)

func TestCatalog_listsAndShowsEntries(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("GET "+orgPath+"/catalog", http.StatusOK, `{"items":[`+anEntry+`]}`)
	b.answer("GET "+entryPath, http.StatusOK, anEntry)
	b.answer("GET /api/admin/catalog", http.StatusOK, `{"items":[]}`)
	code, out, errOut := b.run(t, "catalog")
	require.Zero(t, code, errOut)
	require.Equal(t, "SLUG      DISPLAY NAME   SCOPE   VERSION   PHASE   WORKSPACES   CREATED                CREATED BY\n"+
		"widgets   Widgets        Org     v1        Ready   3            2026-11-02T00:00:00Z   alice\n", out)
	code, out, errOut = b.run(t, "catalog", "get", "widgets")
	require.Zero(t, code, errOut)
	require.Contains(t, strings.Join(strings.Fields(out), " "), "CLAIM VERBS DANGEROUS STATE configmaps get,list secrets * DANGEROUS RESOURCE OBJECTS widgets.example.org/widgets")
	_, out, _ = b.run(t, "catalog", "get", entryUUID, "-o", "json")
	require.JSONEq(t, anEntry, out)
	_, out, _ = b.run(t, "catalog", "list", "-o", "wide")
	require.Contains(t, out, "root:kedge:orgs:o:w")
	code, _, errOut = b.run(t, "catalog", "--global")
	require.Zero(t, code, errOut)
	code, _, errOut = b.run(t, "catalog", "get", "gadgets")
	require.Equal(t, 1, code)
	require.Equal(t, "kedge: there is no entry with the slug or the UUID \"gadgets\"; to see what there is, run: kedge catalog list\n", errOut)
	code, _, _ = b.run(t, "catalog", "--global", "--org", "ACME")
	require.Equal(t, 2, code)
}

func TestPublish_sendsFileAndFlags(t *testing.T) {
	t.Parallel()
	const flags = "--slug widgets --name Widgets --export-path root:kedge:providers:widgets --export-name widgets.example.org"
	object := "apiVersion: tenancy.kedge.faros.sh/v1alpha1\nkind: CatalogEntry\nmetadata: {name: " + entryUUID + "}\nspec:\n  slug: widgets\n  displayName: Widgets\n" +
		"  version: v1\n  apiExport: {path: root:kedge:providers:widgets, name: widgets.example.org}\n  memberResources: [widgets]\n"
	for name, c := range map[string]struct{ args, route, body string }{
		"a file":         {"-f {file}", "POST " + orgPath + "/catalog", `{` + spec + `,"version":"v1","memberResources":["widgets"]}`},
		"standard input": {"-f -", "POST " + orgPath + "/catalog", `{` + spec + `,"version":"v1","memberResources":["widgets"]}`},
		"flags":          {flags, "POST " + orgPath + "/catalog", `{` + spec + `}`},
		"both":           {"-f {file} --version v2 --description For.you", "POST " + orgPath + "/catalog", `{` + spec + `,"version":"v2","description":"For.you","memberResources":["widgets"]}`},
		"all flags": {flags + " --backend-url https://b --icon-url data:i --member-resource a --member-resource b.c", "POST " + orgPath + "/catalog",
			`{` + spec + `,"backend":{"url":"https://b"},"ui":{"iconURL":"data:i"},"memberResources":["a","b.c"]}`},
		"by workspace":   {"--slug widgets --name Widgets --export-workspace Web --export-name widgets.example.org", "POST " + orgPath + "/catalog", `{` + spec + `}`},
		"for everybody":  {flags + " --global", "POST /api/admin/catalog", `{` + spec + `}`},
		"again":          {flags + " --replace", "PUT " + entryPath, `{` + spec + `}`},
		"again, but new": {flags + " --replace --global", "POST /api/admin/catalog", `{` + spec + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.inWorkspace(t)
			b.answer("GET "+orgPath+"/catalog", http.StatusOK, `{"items":[`+anEntry+`]}`)
			b.answer("GET /api/admin/catalog", http.StatusOK, `{"items":[]}`)
			b.answer("GET "+wsPath, http.StatusOK, `{"uuid":"`+wsUUID+`","workspacePath":"root:kedge:providers:widgets"}`)
			calls := b.record(t, c.route, http.StatusCreated, anEntry)
			require.NoError(t, os.WriteFile(b.file("entry.yaml"), []byte(object), 0o600))
			args := append([]string{"catalog", "publish"}, strings.Fields(strings.ReplaceAll(c.args, "{file}", b.file("entry.yaml")))...)
			code, out, errOut := b.runWith(t, cli.Streams{In: strings.NewReader(object)}, args...)
			require.Zero(t, code, errOut)
			require.Contains(t, out, "widgets")
			require.Len(t, *calls, 1)
			require.JSONEq(t, c.body, (*calls)[0].body)
		})
	}
}

func TestPublish_refusals(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("POST "+orgPath+"/catalog", http.StatusConflict, `{"kind":"Status","message":"the slug widgets is taken"}`)
	write := func(name, content string) string {
		require.NoError(t, os.WriteFile(b.file(name), []byte(content), 0o600))
		return b.file(name)
	}
	for args, c := range map[string]struct {
		code int
		says string
	}{
		"": {2, "needs --slug"},
		"-f " + write("half.yaml", "kind: CatalogEntry\nspec: {slug: a}"):  {2, "needs --name"},
		"-f " + write("other.yaml", "kind: APIExport"):                     {1, `has the kind "APIExport"; give a CatalogEntry`},
		"-f " + write("typo.yaml", "kind: CatalogEntry\nspec: {slugg: a}"): {1, "is not a CatalogEntry"},
		"-f " + write("large.yaml", strings.Repeat("#", 65<<10)):           {1, "larger"},
		"-f " + b.file("none.yaml"):                                        {1, "no such file"},
		"--slug widgets --name W --export-path p --export-name n":          {1, "the slug widgets is taken; to change an entry that is yours, run the command again with --replace"},
	} {
		code, _, errOut := b.run(t, append([]string{"catalog", "publish"}, strings.Fields(args)...)...)
		require.Equal(t, c.code, code, "%s: %s", args, errOut)
		require.Contains(t, errOut, c.says, args)
	}
}

func TestCatalogDelete_asks(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("GET "+orgPath+"/catalog", http.StatusOK, `{"items":[`+anEntry+`]}`)
	calls := b.record(t, "DELETE "+entryPath, http.StatusNoContent, "")
	code, _, _ := b.run(t, "catalog", "delete", "widgets")
	require.Equal(t, 2, code)
	code, _, errOut := b.runAt(t, "n\n", "catalog", "delete", "widgets")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "where it is enabled, it stays so")
	require.Empty(t, *calls)
	code, _, errOut = b.runAt(t, "y\n", "catalog", "delete", "widgets")
	require.Zero(t, code, errOut)
	require.Len(t, *calls, 1)
}
