package server

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/invitations"
	"github.com/faroshq/kedge-hub/pkg/api/requests"
)

func TestCounters_showEveryEvent(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	invitation, err := invitations.NewCount(registry)
	require.NoError(t, err)
	request, err := requests.NewCount(registry)
	require.NoError(t, err)
	invitation("made")
	invitation(string(v1alpha1.InvitationRevoked))
	request(string(v1alpha1.RequestApproved))
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP kedge_access_requests_total Requests for rights that were made, approved, denied, withdrawn or ended early on this replica, by what happened.
# TYPE kedge_access_requests_total counter
kedge_access_requests_total{event="approved"} 1
kedge_access_requests_total{event="denied"} 0
kedge_access_requests_total{event="ended"} 0
kedge_access_requests_total{event="made"} 0
kedge_access_requests_total{event="withdrawn"} 0
# HELP kedge_invitations_total Invitations that were made, accepted, declined or revoked on this replica, by what happened.
# TYPE kedge_invitations_total counter
kedge_invitations_total{event="accepted"} 0
kedge_invitations_total{event="declined"} 0
kedge_invitations_total{event="made"} 1
kedge_invitations_total{event="revoked"} 1
`)))
	_, err = invitations.NewCount(registry)
	require.ErrorContains(t, err, "register the metric of invitations")
}
