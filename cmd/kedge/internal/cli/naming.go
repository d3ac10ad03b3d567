package cli

import (
	"fmt"
	"iter"
	"strings"
	"text/tabwriter"
)

// naming says how people name objects of one kind: by UUID, or by display name.
type naming struct {
	// noun is the word in messages; command lists the objects.
	noun, command string
	// admin is the header of the person who tells objects of one name apart.
	admin string
}

func organizations() naming { return naming{"organization", "kedge orgs", "FIRST ADMIN"} }
func workspaces() naming    { return naming{"workspace", "kedge workspaces", "CREATED BY"} }
func botsOfWorkspace() naming {
	return naming{"bot", "kedge bots", "ROLE"}
}

// tenant is an object that people name: an organization, a workspace or a bot.
type tenant struct {
	UUID                string `json:"uuid"`
	DisplayName         string `json:"displayName"`
	Role                string `json:"role,omitempty"`
	Phase               string `json:"phase,omitempty"`
	CreatedAt           string `json:"createdAt,omitempty"`
	CreatedBy           string `json:"createdBy,omitempty"`
	FirstAdmin          string `json:"firstAdmin,omitempty"`
	DeletionRequestedAt string `json:"deletionRequestedAt,omitempty"`
	PurgeAt             string `json:"purgeAt,omitempty"`
}

func (t tenant) String() string {
	if t.DisplayName == "" {
		return t.UUID
	}
	return fmt.Sprintf("%q (%s)", t.DisplayName, t.UUID)
}

// admin is the person who tells objects of one name apart, or the role of a bot.
func (t tenant) admin() string {
	switch {
	case t.FirstAdmin != "":
		return t.FirstAdmin
	case t.CreatedBy != "":
		return t.CreatedBy
	}
	return t.Role
}

// noneError is the error for an unknown name or UUID.
type noneError struct{ text string }

func (e *noneError) Error() string { return e.text }

// find finds an object in a list, by UUID, or by display name if that is unique.
func find[T object](what naming, list iter.Seq2[T, error], arg string) (tenant, error) {
	items, err := tenantsOf(list)
	if err != nil {
		return tenant{}, err
	}
	return what.among(items, arg, "list")
}

func tenantsOf[T object](list iter.Seq2[T, error]) (items []tenant, err error) {
	for item, err := range list {
		if err != nil {
			return nil, err
		}
		items = append(items, as[tenant](item))
	}
	return items, nil
}

// among finds an object in a list; list is the command that shows the list, for messages.
func (n naming) among(items []tenant, arg, list string) (tenant, error) {
	var found []tenant
	for _, t := range items {
		if t.UUID == arg {
			return t, nil
		}
		if t.DisplayName == arg {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return tenant{}, &noneError{fmt.Sprintf("there is no %s with the UUID or the name %q; to see what there is, run: %s %s", n.noun, arg, n.command, list)}
	case 1:
		return found[0], nil
	}
	return tenant{}, n.ambiguous(found, arg)
}

// ambiguous lists the candidates for a name.
func (n naming) ambiguous(found []tenant, arg string) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%d %ss have the name %q; give the UUID of one of them:\n", len(found), n.noun, arg)
	w := tabwriter.NewWriter(&text, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "  UUID\tCREATED\t"+n.admin)
	for _, t := range found {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", t.UUID, t.CreatedAt, t.admin())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return &usageError{strings.TrimRight(text.String(), "\n")}
}

// usageError is an error in the command line that says all that there is to say.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// Is makes the exit code 2.
func (e *usageError) Is(target error) bool { return target == errUsage }
