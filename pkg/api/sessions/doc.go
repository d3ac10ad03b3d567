// Package sessions serves the Sessions of people: /api/users/me/sessions, and for platform
// admins /api/admin/users/{name}/sessions. A Session is one login of one person with the
// command line or a browser. When it ends, the hub refuses all tokens that it issued.
//
// The answer for a Session that has ended, that is not redeemed yet or that belongs to another
// person is the same 404 as for one that does not exist.
package sessions
