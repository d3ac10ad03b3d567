package main

import (
	"fmt"
	"net/http"

	"github.com/faroshq/kedge-hub/test/framework"
)

// leave asks to leave the Organization, whose only admin the flooder is: 409.
func leave(s *flooder, _, _ int) framework.Call {
	return framework.InOrg(flooderName, http.MethodDelete, s.Org.UUID, "/memberships/me", nil)
}

// toggle changes a setting from which roles in all Workspaces of the Organization follow, and back.
func toggle(s *flooder, stream, turn int) framework.Call {
	access := [2]string{"none", "view"}[(stream+turn)%2]
	return framework.InOrg(flooderName, http.MethodPatch, s.Org.UUID, "", map[string]string{"defaultAccess": access})
}

// networks is the number of networks from which strangers ask.
const networks = 40

// network is the address of a stranger: IPv4 and IPv6, some of one provider, some of others.
func network(i int) string {
	n := i/4 + 1
	return [...]string{
		fmt.Sprintf("198.51.100.%d", n), fmt.Sprintf("203.0.113.%d", n),
		fmt.Sprintf("2001:db8:1:%x::1", n), fmt.Sprintf("2001:db8:%x::1", n+0x100),
	}[i%4]
}

// askAsStranger sends the requests of a login that need no secret of the hub, from a network for each stream.
func askAsStranger(_ *flooder, stream, turn int) framework.Call {
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	requests := [...]framework.Call{
		{Method: http.MethodGet, Path: "/auth/device/verify?user_code=BCDF-GHJK"},
		{Method: http.MethodGet, Path: "/auth/callback?state=x&code=y"},
		{Method: http.MethodGet, Path: framework.NewLogin().URL(&framework.Client{})},
		{
			Method: http.MethodPost, Path: "/auth/token", Header: form,
			Body: "client_id=kedge-cli&grant_type=refresh_token&refresh_token=a.1.b",
		},
		{Method: http.MethodPost, Path: "/auth/revoke", Header: form, Body: "token=a.1.b"},
		{Method: http.MethodPost, Path: "/auth/device", Header: form, Body: "client_id=kedge-cli"},
		{Method: http.MethodPost, Path: "/auth/logout", Header: http.Header{"Sec-Fetch-Site": {"same-origin"}}},
	}
	c := requests[turn%len(requests)]
	if c.Header = c.Header.Clone(); c.Header == nil {
		c.Header = http.Header{}
	}
	c.Header.Set("X-Forwarded-For", network(stream%networks))
	return c
}
