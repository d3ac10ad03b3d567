package options

import (
	"time"

	"github.com/spf13/pflag"
)

// GraceOptions are the times during which something soft-deleted can be undeleted.
type GraceOptions struct {
	// DeletionGrace (--deletion-grace) is that after a request. Default 720h.
	DeletionGrace time.Duration
	// ExpiredWorkspaceGrace (--expired-workspace-grace) is that of a Workspace whose time was over, unless
	// DeletionGrace is shorter. Default 24h.
	ExpiredWorkspaceGrace time.Duration
}

func (g *GraceOptions) addFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&g.DeletionGrace, "deletion-grace", g.DeletionGrace, "Time during which a deleted user, organization or workspace can be undeleted.")
	fs.DurationVar(&g.ExpiredWorkspaceGrace, "expired-workspace-grace", g.ExpiredWorkspaceGrace,
		"Time during which a workspace that was deleted at its end can be undeleted; at most --deletion-grace.")
}
