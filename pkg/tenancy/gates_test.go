package tenancy_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestGates_letBotsInByTheirAccount(t *testing.T) {
	t.Parallel()
	g := tenancy.Gates{People: newWorld().gate(t), Bots: newBotWorld().gate(t)}
	entry, err := g.Enter(tenancy.BotKey("account"), "cluster")
	require.NoError(t, err)
	require.Equal(t, "cluster", entry.Workspace.ClusterID)
	_, err = g.Enter("account", "cluster")
	require.Error(t, err, "no User has the name of an account")
}

func TestGates_refuseWhileKCPIsUnavailable(t *testing.T) {
	t.Parallel()
	down, silent := errors.New("kcp is down"), errors.New("its shard is silent")
	var all, shard error
	g := tenancy.Gates{People: newWorld().gate(t), Bots: newBotWorld().gate(t)}
	enter := g.While(func() error { return all }, func(org string, clusters ...string) error {
		require.NotEmpty(t, org)
		require.Equal(t, []string{"cluster"}, clusters)
		return shard
	})
	bot := tenancy.BotKey("account")
	_, err := enter(bot, "cluster")
	require.NoError(t, err)
	shard = silent
	_, err = enter(bot, "cluster")
	require.ErrorIs(t, err, silent)
	_, err = enter("stranger", "elsewhere")
	require.NotErrorIs(t, err, silent, "a caller without access learns nothing of shards")
	all = down
	_, err = enter(bot, "cluster")
	require.ErrorIs(t, err, down)
}
