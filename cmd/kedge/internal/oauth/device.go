package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

// The interval of polling that RFC 8628 gives for a hub that names none, and what is added to it
// when the hub asks for less.
const (
	defaultInterval = 5 * time.Second
	slowDown        = 5 * time.Second
)

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// Device is what the person needs to confirm a login on another device.
type Device struct {
	UserCode string
	// URL is the page on which the person types the code.
	URL string
}

// LogInWithDevice logs in with a browser on any device. description names this computer to the
// person.
func (h *Hub) LogInWithDevice(ctx context.Context, description string, show func(Device)) (Tokens, error) {
	if err := h.checkClock(); err != nil {
		return Tokens{}, err
	}
	var out rest.Device
	if err := h.post(ctx, h.at.DeviceAuthorizationEndpoint, url.Values{"description": {description}}, &out); err != nil {
		return Tokens{}, err
	}
	if out.DeviceCode == "" || out.UserCode == "" || !strings.HasPrefix(out.VerificationURI, h.Server+"/") {
		return Tokens{}, fmt.Errorf("the answer of the hub at %s has no code", h.Server)
	}
	show(Device{UserCode: clean(out.UserCode), URL: clean(out.VerificationURI)})
	interval := time.Duration(out.Interval) * time.Second
	if interval <= 0 {
		interval = defaultInterval
	}
	for {
		select {
		case <-ctx.Done():
			return Tokens{}, context.Cause(ctx)
		case <-h.Clock.After(interval):
		}
		tokens, err := h.tokens(ctx, url.Values{"grant_type": {deviceGrant}, "device_code": {out.DeviceCode}})
		var refused *Error
		switch {
		case err == nil:
			return tokens, nil
		case Unavailable(err):
			interval += slowDown
			continue
		case !errors.As(err, &refused):
			return Tokens{}, err
		}
		switch refused.Code {
		case "authorization_pending":
		case "slow_down":
			interval += slowDown
		case "expired_token":
			return Tokens{}, errors.New("nobody confirmed the code in time; run kedge login again")
		default:
			return Tokens{}, outcome(refused)
		}
	}
}
