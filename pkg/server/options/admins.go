package options

import "github.com/spf13/pflag"

// AdminOptions name the people who administer or audit the hub. Users are usernames of TokenFile, and {issuer}#{subject}
// of people who log in with OIDC; groups are named as in TokenFile, and with the username prefix for people who log in
// with OIDC.
type AdminOptions struct {
	// AdminUsers (--admin-user) and AdminGroups (--admin-group) are the platform admins.
	AdminUsers, AdminGroups []string
	// AuditorUsers (--auditor-user) and AuditorGroups (--auditor-group) read what happened in all Organizations, and
	// change nothing.
	AuditorUsers, AuditorGroups []string
}

func (o *AdminOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.AdminUsers, "admin-user", o.AdminUsers, "Platform admin: a username of --token-file, or {issuer}#{subject} of a person who logs in with OIDC. Can be repeated. Platform admins are approved whatever --registration says.")
	fs.StringSliceVar(&o.AdminGroups, "admin-group", o.AdminGroups, "Group whose members are platform admins: as in --token-file, or with --oidc-username-prefix for groups of ID tokens. Can be repeated. They are approved whatever --registration says.")
	fs.StringSliceVar(&o.AuditorUsers, "auditor-user", o.AuditorUsers, "Auditor, named as for --admin-user. Can be repeated. Auditors read what happened in all organizations, who had access, what was used and what it costs, and the lists of people and organizations. They change nothing, and get into no workspace.")
	fs.StringSliceVar(&o.AuditorGroups, "auditor-group", o.AuditorGroups, "Group whose members are auditors, named as for --admin-group. Can be repeated.")
}
