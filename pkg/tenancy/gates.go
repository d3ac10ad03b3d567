package tenancy

// Gates are the gates of people and of bots, by the key of a caller: the name of a User, or a
// BotKey.
type Gates struct {
	People Gate
	Bots   BotGate
}

// Enter returns the access of a caller to the child Workspace that cluster, an ID or a path, refers
// to.
func (g Gates) Enter(caller, cluster string) (Entry, error) {
	if account, ok := BotAccountOf(caller); ok {
		return g.Bots.Enter(account, cluster)
	}
	return g.People.Enter(caller, cluster)
}

// While returns an Enter that fails while available does, or reachable for the Organization and the
// logical cluster of the Workspace. It is evaluated again for open streams, which end then.
func (g Gates) While(available func() error, reachable func(org string, clusters ...string) error) func(caller, cluster string) (Entry, error) {
	return func(caller, cluster string) (Entry, error) {
		if err := available(); err != nil {
			return Entry{}, err
		}
		entry, err := g.Enter(caller, cluster)
		if err == nil {
			err = reachable(entry.Workspace.OrgUUID, entry.Workspace.ClusterID)
		}
		return entry, err
	}
}
