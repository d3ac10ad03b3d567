package auth

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// StaticIssuer is the issuer of the identities in a token file.
const StaticIssuer = "static"

// StaticTokens authenticates the tokens of a file. They are for development and
// break-glass access.
type StaticTokens struct {
	// byHash are the identities by Credential, bySession by SessionCredential.
	byHash, bySession map[string]*Identity
}

// LoadStaticTokens reads a CSV file with the columns token,username,uid,"group1,group2".
// It refuses usernames and groups of kcp, and the names under which kcp knows the hub:
// admission and RBAC in kcp exempt them by name. Errors name the line and never contain a
// token.
func LoadStaticTokens(path string, hub ...string) (*StaticTokens, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	t, err := parseStaticTokens(f, hub)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func parseStaticTokens(in io.Reader, hub []string) (*StaticTokens, error) {
	reader := csv.NewReader(in)
	reader.FieldsPerRecord = -1
	t := &StaticTokens{byHash: map[string]*Identity{}, bySession: map[string]*Identity{}}
	uids := map[string]string{}
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			var parse *csv.ParseError
			if errors.As(err, &parse) {
				return nil, fmt.Errorf("line %d: %w", parse.Line, parse.Err)
			}
			return nil, err
		}
		line, _ := reader.FieldPos(0)
		if len(record) > 1 && (NameOfKCP(record[1]) || slices.Contains(hub, record[1])) {
			return nil, fmt.Errorf("line %d: the username %q belongs to kcp or to the hub itself in kcp; give this person another one", line, record[1])
		}
		if err := t.add(record, uids); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func (t *StaticTokens) add(record []string, uids map[string]string) error {
	if len(record) < 3 {
		return errors.New(`needs at least the columns token,username,uid`)
	}
	token, username, uid := record[0], record[1], record[2]
	switch {
	case token == "":
		return errors.New("the token is empty")
	case username == "":
		return errors.New("the username is empty")
	case ReservedName(username):
		return fmt.Errorf("the username %q is reserved: it may begin with none of %q", username, reservedPrefixes())
	}
	if known, ok := uids[username]; ok && known != uid {
		return fmt.Errorf("the username %q has another uid on an earlier line", username)
	}
	uids[username] = uid
	id := &Identity{
		Kind: Person, Issuer: StaticIssuer, Subject: username, Username: username,
		PreferredUsername: username, DisplayName: username,
	}
	if strings.Contains(username, "@") {
		id.Email = username
	}
	if len(record) > 3 {
		for group := range strings.SplitSeq(record[3], ",") {
			group = strings.TrimSpace(group)
			if reserved(group) || strings.HasPrefix(group, "kedge:") {
				return fmt.Errorf("the group %q is reserved: it may begin with neither %q nor %q", group, "system:", "kedge:")
			}
			if group != "" {
				id.Groups = append(id.Groups, group)
			}
		}
	}
	id.Credential = credentialID(token)
	if _, ok := t.byHash[id.Credential]; ok {
		return errors.New("the token is on an earlier line already")
	}
	t.byHash[id.Credential], t.bySession[SessionCredential(id)] = id, id
	return nil
}

// NameOfKCP reports whether kcp itself creates a user of this name.
func NameOfKCP(username string) bool { return slices.Contains(namesOfKCP(), username) }

func reserved(name string) bool { return strings.HasPrefix(name, "system:") }

// Authenticate looks the token up by its SHA-256 hash, so that the time of the comparison
// reveals nothing about the tokens in the file.
func (t *StaticTokens) Authenticate(_ context.Context, token string) (*Identity, bool, error) {
	id, ok := t.byHash[credentialID(token)]
	return id, ok, nil
}

// SessionCredential identifies the session of a browser that began with a static token. It is
// not the Credential of the token, because the token does not end with the session.
func SessionCredential(id *Identity) string { return credentialID("session of " + id.Credential) }

// OfSession returns the identity of the token that a session began with, by its
// SessionCredential. ok is false if the file does not have the token any more.
func (t *StaticTokens) OfSession(credential string) (id *Identity, ok bool) {
	id, ok = t.bySession[credential]
	return id, ok
}
