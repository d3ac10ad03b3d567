package connect

import (
	"context"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// Usernames asks kcp for the names under which it knows the hub. They are never
// configured: a wrong one would be a way past the admission policy of Workspaces.
func Usernames(ctx context.Context, identities ...*kcp.Clients) ([]string, error) {
	names := make([]string, 0, len(identities))
	for _, c := range identities {
		name, err := c.Username(ctx, kcp.RootCluster)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}
