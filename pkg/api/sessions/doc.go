// Package sessions serves the Sessions of people: /api/users/me/sessions, and for platform
// admins /api/admin/users/{name}/sessions. A Session is one login of one person with the
// command line or a browser. When it ends, what was handed out through it is refused.
//
// A Session that has ended, one that is not redeemed yet and one of another person are
// answered like one that does not exist.
package sessions
