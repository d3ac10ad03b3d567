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
	"sync"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

// StaticIssuer is the issuer of the identities in a token file.
const StaticIssuer = "static"

// StaticTokens authenticates the tokens of a file. They are for development and
// break-glass access.
type StaticTokens struct {
	path  string
	table atomic.Pointer[staticTable]

	// mu is held while the file is read.
	mu sync.Mutex
	// reserved are the names under which kcp knows the hub.
	reserved []string
}

// staticTable is the content of a token file.
type staticTable struct {
	// byHash are the identities by Credential, bySession by SessionCredential.
	byHash, bySession map[string]*Identity
	// uids are the UIDs by username, tokens the tokens by SessionCredential.
	uids, tokens map[string]string
}

// LoadStaticTokens reads a CSV file with the columns token,username,uid,"group1,group2".
// It refuses usernames and groups of kcp, and the names under which kcp knows the hub:
// admission and RBAC in kcp exempt them by name. Errors name the line and never contain a
// token.
func LoadStaticTokens(path string, hub ...string) (*StaticTokens, error) {
	t := &StaticTokens{path: path}
	return t, t.Reserve(hub...)
}

// Reserve sets the names under which kcp knows the hub, and reads the file again.
func (t *StaticTokens) Reserve(hub ...string) error {
	t.mu.Lock()
	t.reserved = hub
	t.mu.Unlock()
	return t.Reload()
}

// Reload reads the file again. What was read before stays in use if it fails.
func (t *StaticTokens) Reload() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, err := os.Open(t.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	table, err := parseStaticTokens(f, t.reserved)
	if err != nil {
		return fmt.Errorf("%s: %w", t.path, err)
	}
	t.table.Store(table)
	return nil
}

func parseStaticTokens(in io.Reader, hub []string) (*staticTable, error) {
	reader := csv.NewReader(in)
	reader.FieldsPerRecord = -1
	t := &staticTable{byHash: map[string]*Identity{}, bySession: map[string]*Identity{}, uids: map[string]string{}, tokens: map[string]string{}}
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
		if err := t.add(record); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func (t *staticTable) add(record []string) error {
	if len(record) < 3 {
		return errors.New(`needs at least the columns token,username,uid`)
	}
	token, username, uid := record[0], record[1], record[2]
	switch {
	case token == "":
		return errors.New("the token is empty")
	case username == "":
		return errors.New("the username is empty")
	case !Readable(username):
		return fmt.Errorf("the username %q is blank, has a control character, or begins or ends with an invisible one", username)
	case ReservedName(username):
		return fmt.Errorf("the username %q is reserved: it may begin with none of %q", username, reservedPrefixes())
	}
	if known, ok := t.uids[username]; ok && known != uid {
		return fmt.Errorf("the username %q has another uid on an earlier line", username)
	}
	t.uids[username] = uid
	id := &Identity{
		Kind: Person, Issuer: StaticIssuer, Subject: username, Username: username,
		PreferredUsername: username, DisplayName: username, GroupsKnown: true,
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
			if group != "" && !Readable(group) {
				return fmt.Errorf("the group %q has a control character, or begins or ends with an invisible one", group)
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
	session := SessionCredential(id)
	t.byHash[id.Credential], t.bySession[session], t.tokens[session] = id, id, token
	return nil
}

// NameOfKCP reports whether kcp itself creates a user of this name.
func NameOfKCP(username string) bool { return slices.Contains(namesOfKCP(), username) }

func reserved(name string) bool { return strings.HasPrefix(name, "system:") }

// Authenticate looks the token up by its SHA-256 hash, so that the time of the comparison
// reveals nothing about the tokens in the file.
func (t *StaticTokens) Authenticate(_ context.Context, token string) (*Identity, bool, error) {
	id, ok := t.table.Load().byHash[credentialID(token)]
	return id, ok, nil
}

// SessionCredential identifies the session of a browser that began with a static token. It is
// not the Credential of the token, because the token does not end with the session.
func SessionCredential(id *Identity) string { return credentialID("session of " + id.Credential) }

// OfSession returns the identity of the token that a session began with, by its
// SessionCredential. ok is false if the file does not have the token any more.
func (t *StaticTokens) OfSession(credential string) (id *Identity, ok bool) {
	id, ok = t.table.Load().bySession[credential]
	return id, ok
}

// AuthenticateToken implements authenticator.Token for the embedded kcp.
func (t *StaticTokens) AuthenticateToken(_ context.Context, token string) (*authenticator.Response, bool, error) {
	table := t.table.Load()
	id, ok := table.byHash[credentialID(token)]
	if !ok {
		return nil, false, nil
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: id.Username, UID: table.uids[id.Username], Groups: id.Groups}}, true, nil
}

// Has reports whether the file still gives an identity to the token that it was made from, by the
// Credential of the token or of its session. It is true for identities of other issuers.
func (t *StaticTokens) Has(id *Identity) bool {
	if id.Issuer != StaticIssuer || id.Credential == "" {
		return true
	}
	table := t.table.Load()
	now, ok := table.byHash[id.Credential]
	if !ok {
		now, ok = table.bySession[id.Credential]
	}
	return ok && now.Username == id.Username && slices.Equal(now.Groups, id.Groups)
}

// TokenOfSession returns the token that a session began with, like OfSession. The hub presents it
// to kcp where the person themselves must have a right there.
func (t *StaticTokens) TokenOfSession(credential string) (token string, ok bool) {
	token, ok = t.table.Load().tokens[credential]
	return token, ok
}
