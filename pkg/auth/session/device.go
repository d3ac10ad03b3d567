package session

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// deviceLife is the time in which a person must confirm a device.
	deviceLife = 10 * time.Minute
	// pollInterval is the time between two polls of a device; each poll that comes earlier
	// adds as much to it. pollTolerance is how much earlier it may come.
	pollInterval  = 5 * time.Second
	pollTolerance = time.Second
	// userCodeLetters has no vowels, so that codes spell no words.
	userCodeLetters = "BCDFGHJKLMNPQRSTVWXZ"
	userCodeLength  = 8
)

// DeviceRequest is a device that asks for a login.
type DeviceRequest struct {
	// Description is what the device says about itself.
	Description string
	// Peer is the address that it asked from.
	Peer string
}

// Device is the answer to a device (RFC 8628).
type Device struct {
	DeviceCode string
	UserCode   string
	ExpiresIn  time.Duration
	// Interval is the time between two polls.
	Interval time.Duration
}

// StartDevice begins a login of a device that has no browser.
func (s *Service) StartDevice(ctx context.Context, r DeviceRequest) (Device, error) {
	ctx, cancel := detached(ctx)
	defer cancel()
	userCode, err := s.newUserCode()
	if err != nil {
		return Device{}, failure(err)
	}
	id := hashOf(userCode)
	code, hash, err := s.Keys.newCode(purposeDevice, id)
	if err != nil {
		return Device{}, failure(err)
	}
	// A user code that is in use is a failure that passes by itself: there are 2.5e10.
	err = s.Devices.CreateDevice(ctx, tenancy.DeviceLogin{
		ID: id, CodeHash: hash, Description: clean(r.Description), Peer: clean(r.Peer), ExpiresAt: s.Clock.Now().Add(deviceLife),
	})
	if err != nil {
		return Device{}, failure(err)
	}
	return Device{DeviceCode: code, UserCode: userCode[:4] + "-" + userCode[4:], ExpiresIn: deviceLife, Interval: pollInterval}, nil
}

// Device returns the device that shows a user code. Letters may be in either case, with or
// without the dash.
func (s *Service) Device(ctx context.Context, userCode string) (DeviceRequest, error) {
	held, err := s.waiting(ctx, userCode)
	return DeviceRequest{Description: held.Description, Peer: held.Peer}, err
}

// ConfirmDevice logs a device in as the person of l. The Session has the description of the
// device.
func (s *Service) ConfirmDevice(ctx context.Context, userCode string, l Login) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	held, err := s.waiting(ctx, userCode)
	if err != nil {
		return err
	}
	now := s.Clock.Now()
	name, err := newName(now, s.Random)
	if err != nil {
		return failure(err)
	}
	l.Client, l.Description = v1alpha1.SessionCLI, held.Description
	created, err := s.create(ctx, name, l, &v1alpha1.SessionCode{Hash: held.CodeHash, ExpiresAt: metav1.NewTime(now.Add(codeLife))})
	if err != nil {
		return err
	}
	err = s.decide(ctx, held.ID, func(d *tenancy.DeviceLogin) { d.Session = name })
	if err != nil {
		// Somebody else decided about the device, or the result of the write is unknown. If this
		// fails as well, the Session ends when its code expires.
		_ = s.end(ctx, created)
	}
	return err
}

// DenyDevice refuses a device.
func (s *Service) DenyDevice(ctx context.Context, userCode string) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	held, err := s.waiting(ctx, userCode)
	if err != nil {
		return err
	}
	return s.decide(ctx, held.ID, func(d *tenancy.DeviceLogin) { d.Denied = true })
}

// decide carries out what a person decided about a device that is still waiting.
func (s *Service) decide(ctx context.Context, id string, decision func(*tenancy.DeviceLogin)) error {
	_, err := s.Devices.ChangeDevice(ctx, id, func(d tenancy.DeviceLogin) (tenancy.DeviceLogin, error) {
		decided := d
		decision(&decided)
		// After a lost answer the decision is there already.
		if d == decided {
			return d, nil
		}
		if !s.undecided(d) {
			return d, errUserCode()
		}
		return decided, nil
	})
	if errs.Is(err, errs.NotFound) {
		return errUserCode()
	}
	return failure(err)
}

// PollDevice returns the first tokens of a device that a person has confirmed.
func (s *Service) PollDevice(ctx context.Context, deviceCode string) (Tokens, error) {
	ctx, cancel := detached(ctx)
	defer cancel()
	id, ok := s.Keys.parseCode(purposeDevice, deviceCode)
	if !ok {
		return Tokens{}, refused("the device code is not valid" + loginAgain)
	}
	if s.tooFast(id) {
		return Tokens{}, &Error{Code: CodeSlowDown, Description: "the device polls too often; wait five seconds longer"}
	}
	held, err := s.Devices.GetDevice(ctx, id)
	expired := &Error{Code: CodeExpiredToken, Description: "the device code has expired" + loginAgain}
	switch {
	case errs.Is(err, errs.NotFound):
		return Tokens{}, expired
	case err != nil:
		return Tokens{}, failure(err)
	case subtle.ConstantTimeCompare([]byte(hashOf(deviceCode)), []byte(held.CodeHash)) == 0:
		// The user code was given to another device later.
		return Tokens{}, expired
	case held.Denied:
		return Tokens{}, &Error{Code: CodeAccessDenied, Description: "the login was refused in the browser"}
	case held.Session != "":
		return s.redeemDevice(ctx, held.Session, deviceCode)
	case !s.undecided(held):
		return Tokens{}, expired
	}
	return Tokens{}, &Error{Code: CodeAuthorizationPending, Description: "nobody has confirmed the login yet"}
}

// redeemDevice returns the first tokens of a device. A device that polls again within a minute
// gets them again, because the answer may have been lost. A device that has used its secret has
// received the answer: if its code is presented after that, it is stolen, and the Session ends.
func (s *Service) redeemDevice(ctx context.Context, name, deviceCode string) (Tokens, error) {
	held, err := s.begun(ctx, name)
	if err != nil {
		return Tokens{}, err
	}
	tokens, err := s.redeem(ctx, held, deviceCode, func(*v1alpha1.SessionCode) error { return nil })
	if !errors.Is(err, errReplayed) {
		return tokens, err
	}
	// Another poll of the device may have been faster just now.
	if held, err = s.begun(ctx, name); err != nil {
		return Tokens{}, err
	}
	user, err := s.person(ctx, held)
	if err != nil {
		return Tokens{}, err
	}
	if s.ended(held, user) {
		return Tokens{}, errEnded()
	}
	for _, r := range held.Spec.Rotations {
		if held.Spec.Generation == 1 && r.Generation == 1 && s.Clock.Now().Before(r.At.Add(grace)) {
			kept, err := s.fresh(ctx, held, user)
			return s.tokens(held, kept), err
		}
	}
	return Tokens{}, s.replayed(ctx, held)
}

// polling is when a device polled last, and how long it is to wait.
type polling struct {
	last     time.Time
	interval time.Duration
}

// tooFast reports whether a device polls before its interval is over. It counts the polls at
// this replica, of the devices that polled last.
func (s *Service) tooFast(id string) (early bool) {
	s.polls.Change(id, func(p polling) polling {
		now := s.Clock.Now()
		p.interval = max(p.interval, pollInterval)
		if early = now.Before(p.last.Add(p.interval - pollTolerance)); early {
			p.interval += pollInterval
		}
		p.last = now
		return p
	})
	return early
}

// waiting returns the login with that user code, which nobody has decided about yet.
func (s *Service) waiting(ctx context.Context, userCode string) (tenancy.DeviceLogin, error) {
	code := strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToUpper(userCode))
	if len(code) != userCodeLength || strings.Trim(code, userCodeLetters) != "" {
		return tenancy.DeviceLogin{}, errUserCode()
	}
	held, err := s.Devices.GetDevice(ctx, hashOf(code))
	if errs.Is(err, errs.NotFound) || err == nil && !s.undecided(held) {
		return tenancy.DeviceLogin{}, errUserCode()
	}
	return held, failure(err)
}

func (s *Service) undecided(d tenancy.DeviceLogin) bool {
	return d.Session == "" && !d.Denied && s.Clock.Now().Before(d.ExpiresAt)
}

func errUserCode() error {
	return &Error{Code: CodeExpiredToken, Description: "the code is unknown, was used or has expired; start again: kedge login --device"}
}

// newUserCode returns letters that a person types. All are equally likely.
func (s *Service) newUserCode() (string, error) {
	const fair = 256 / len(userCodeLetters) * len(userCodeLetters)
	code, one := make([]byte, 0, userCodeLength), make([]byte, 1)
	for len(code) < userCodeLength {
		if _, err := io.ReadFull(s.Random, one); err != nil {
			return "", fmt.Errorf("read random bytes: %w", err)
		}
		if int(one[0]) < fair {
			code = append(code, userCodeLetters[int(one[0])%len(userCodeLetters)])
		}
	}
	return string(code), nil
}
