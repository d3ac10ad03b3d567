package v1

import "time"

// PastAccess is who had access to an organization, or to a workspace, at a moment.
type PastAccess struct {
	Answer `json:"-"`
	At     time.Time `json:"at"`
	// Since is the time from which on access is recorded, absent if nothing is.
	Since *time.Time `json:"since,omitempty"`
	// AsOf is the last moment up to At at which the hub looked. It is absent if At is before the first record.
	AsOf *time.Time `json:"asOf,omitempty"`
	// Active is false if the place did not exist, or was soft-deleted: nobody had access.
	Active bool `json:"active"`
	// Message says what is not known.
	Message string         `json:"message,omitempty"`
	Items   []AccessHolder `json:"items"`
}

// AccessHolder is a person or a bot with access.
type AccessHolder struct {
	// Workspace is absent for access to the organization itself.
	Workspace string `json:"workspace,omitempty"`
	// User is a name. Bot is a UUID, and DisplayName the name of the bot. One of User and Bot is absent.
	User        string `json:"user,omitempty"`
	Bot         string `json:"bot,omitempty"`
	DisplayName string `json:"displayName,omitempty"`
	// Role is absent for a manager of a workspace without one.
	Role    Role      `json:"role,omitempty"`
	Sudo    bool      `json:"sudo,omitempty"`
	Manager bool      `json:"manager,omitempty"`
	Roles   []RoleRef `json:"roles,omitempty"`
	// Through has the source of the role first.
	Through []PastSource `json:"through"`
	// EveryWorkspace are the sources of access to each workspace that a membership in the organization gives.
	EveryWorkspace []PastSource `json:"everyWorkspace,omitempty"`
	// Tokens are those of a bot that it could use.
	Tokens []PastToken `json:"tokens,omitempty"`
}

// PastSource is a source of access, since when it was as it was.
type PastSource struct {
	Through string `json:"through"`
	Role    Role   `json:"role"`
	// Sources are what the membership came from.
	Sources   []string   `json:"sources,omitempty"`
	Since     time.Time  `json:"since"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
}

// PastToken is a token of a bot.
type PastToken struct {
	ID        string     `json:"id"`
	Name      string     `json:"name,omitempty"`
	Since     time.Time  `json:"since"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
}
