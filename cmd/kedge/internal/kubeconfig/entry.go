package kubeconfig

import (
	"errors"
	"slices"
	"strings"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

// Entry is a cluster, a user and a context for one workspace. They have the same name.
type Entry struct {
	Name string
	// UUID is that of the workspace.
	UUID string
	// profile is the login whose token the entry uses.
	profile string
	cluster clientcmdv1.Cluster
	user    clientcmdv1.AuthInfo
	context clientcmdv1.Context
}

// Source says what an entry is made of.
type Source struct {
	// Org and Workspace are display names.
	Org, Workspace string
	UUID           string
	// Server and Profile are the login that kedge credential uses.
	Server, Profile string
	// Bot is true for the login of a bot.
	Bot bool
	// Kubeconfig is the hub's kubeconfig for the workspace.
	Kubeconfig []byte
}

// New returns the entry for a workspace. Its exec plugin names the login.
func New(s Source) (*Entry, error) {
	var c clientcmdv1.Config
	if err := yaml.Unmarshal(s.Kubeconfig, &c); err != nil || len(c.Clusters) != 1 || len(c.Contexts) != 1 || len(c.AuthInfos) != 1 ||
		c.AuthInfos[0].AuthInfo.Exec == nil && !s.Bot {
		return nil, errors.New("the kubeconfig that the hub answered is not a kedge-hub's")
	}
	if s.Bot {
		// The hub leaves the login to a bot, which may have a token only. This one has a login of kedge.
		c.AuthInfos[0].AuthInfo = clientcmdv1.AuthInfo{Exec: &clientcmdv1.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: "kedge", ProvideClusterInfo: true, InteractiveMode: clientcmdv1.NeverExecInteractiveMode,
		}}
	}
	e := &Entry{UUID: s.UUID, profile: s.Profile, cluster: c.Clusters[0].Cluster, user: c.AuthInfos[0].AuthInfo, context: c.Contexts[0].Context}
	e.user.Exec.Args = []string{"credential", "--server", s.Server, "--profile", s.Profile}
	e.rename(rest.ContextName(s.Org, s.Workspace))
	// The hub knows whether the person can enter another workspace of that name.
	if distinct := rest.DistinctContextName(e.Name, s.UUID); c.Contexts[0].Name == distinct {
		e.rename(distinct)
	}
	return e, nil
}

// Impersonate makes the entry act as a user in a group.
func (e *Entry) Impersonate(user, group string) {
	e.user.Impersonate, e.user.ImpersonateGroups = user, []string{group}
}

func (e *Entry) rename(name string) { e.Name, e.context.Cluster, e.context.AuthInfo = name, name, name }

// names are the names that an entry can have, the best first.
func (e *Entry) names() []string {
	short := e.Name
	if !strings.HasSuffix(short, "-"+e.UUID[:min(len(e.UUID), 8)]) {
		short = rest.DistinctContextName(e.Name, e.UUID)
	}
	return []string{e.Name, short, short + "@" + e.profile, e.Name + "-" + e.UUID + "@" + e.profile}
}

// Distinguish adds the first part of the workspace's UUID to names that are equal, or all of it
// where that is equal, too.
func Distinguish(entries []*Entry) {
	for _, distinct := range []func(*Entry) string{
		func(e *Entry) string { return rest.DistinctContextName(e.Name, e.UUID) },
		func(e *Entry) string { return e.Name + "-" + e.UUID },
	} {
		count := map[string]int{}
		for _, e := range entries {
			count[e.Name]++
		}
		for _, e := range entries {
			if count[e.Name] > 1 {
				e.rename(distinct(e))
			}
		}
	}
}

// Print returns a kubeconfig with the entries. The current context is the one of the workspace
// current, or of the only one.
func Print(entries []*Entry, current string) ([]byte, error) {
	c := clientcmdv1.Config{APIVersion: clientcmdv1.SchemeGroupVersion.Version, Kind: "Config"}
	for _, e := range entries {
		c.Clusters = append(c.Clusters, clientcmdv1.NamedCluster{Name: e.Name, Cluster: e.cluster})
		c.AuthInfos = append(c.AuthInfos, clientcmdv1.NamedAuthInfo{Name: e.Name, AuthInfo: e.user})
		c.Contexts = append(c.Contexts, clientcmdv1.NamedContext{Name: e.Name, Context: e.context})
		if e.UUID == current || len(entries) == 1 {
			c.CurrentContext = e.Name
		}
	}
	return yaml.Marshal(c)
}

// chooseName gives an entry a name that no other entry of a kubeconfig has. An entry for the same
// workspace and login is replaced; it keeps its namespace, which people choose.
func (e *Entry) chooseName(c *clientcmdv1.Config) error {
	free := ""
	for _, name := range e.names() {
		cluster := slices.IndexFunc(c.Clusters, func(n clientcmdv1.NamedCluster) bool { return n.Name == name })
		user := slices.IndexFunc(c.AuthInfos, func(n clientcmdv1.NamedAuthInfo) bool { return n.Name == name })
		context := slices.IndexFunc(c.Contexts, func(n clientcmdv1.NamedContext) bool { return n.Name == name })
		switch {
		case cluster < 0 && user < 0 && context < 0:
			if free == "" {
				free = name
			}
		case cluster < 0 || user < 0 || context < 0:
		case e.same(c.Clusters[cluster].Cluster, c.AuthInfos[user].AuthInfo):
			if namespace := c.Contexts[context].Context.Namespace; namespace != "" {
				e.context.Namespace = namespace
			}
			e.rename(name)
			return nil
		}
	}
	if free == "" {
		return errors.New("the names of the entry for " + e.Name + " are all taken by other entries")
	}
	e.rename(free)
	return nil
}

// same reports whether a cluster and a user are this entry's, of an earlier merge.
func (e *Entry) same(cluster clientcmdv1.Cluster, user clientcmdv1.AuthInfo) bool {
	return cluster.Server == e.cluster.Server && user.Exec != nil && user.Exec.Command == e.user.Exec.Command && slices.Equal(user.Exec.Args, e.user.Exec.Args)
}
