// What events of the audit log did, in words.

const org = '/api/orgs/{org}';
const ws = `${org}/workspaces/{ws}`;
const bot = `${ws}/serviceaccounts/{sa}`;

/** @type {Record<string, string>} */
const words = {
  'POST /api/orgs': 'Create an organization',
  [`PATCH ${org}`]: 'Change the organization',
  [`DELETE ${org}`]: 'Delete the organization',
  'PATCH /api/admin/orgs/{org}': 'Change the limits of the organization',
  'DELETE /api/admin/orgs/{org}': 'Delete the organization',
  'POST /api/admin/orgs/{org}/undelete': 'Undelete the organization',
  'POST /api/admin/orgs/{org}/admins': 'Make somebody admin of an organization that nobody could administer',
  [`POST ${org}/undelete`]: 'Undelete the organization',
  [`POST ${org}/workspaces`]: 'Create a workspace',
  [`PATCH ${ws}`]: 'Change a workspace',
  [`DELETE ${ws}`]: 'Delete a workspace',
  [`POST ${ws}/undelete`]: 'Undelete a workspace',
  'expire workspace': 'Delete a workspace at its end',
  'delete organization': 'Delete the organization of a person who is gone',
  [`POST ${org}/members`]: 'Add a member to the organization',
  [`PATCH ${org}/members/{user}`]: 'Change a member of the organization',
  [`DELETE ${org}/members/{user}`]: 'Remove a member from the organization',
  [`DELETE ${org}/memberships/me`]: 'Leave the organization',
  [`POST ${ws}/members`]: 'Add a member to a workspace',
  [`PATCH ${ws}/members/{user}`]: 'Change a member of a workspace',
  [`DELETE ${ws}/members/{user}`]: 'Remove a member from a workspace',
  [`DELETE ${ws}/memberships/me`]: 'Leave a workspace',
  'add member': 'Add a member',
  'change member': 'Change a member',
  'demote member': 'Lower the role of a member',
  'remove member': 'Remove a member',
  expire: 'End what a member had for a time',
  promote: 'Make a member admin, because the last one is gone',
  [`POST ${org}/groups`]: 'Let a group in',
  [`DELETE ${org}/groups/{mapping}`]: 'Let a group in no longer',
  ...requests(org),
  ...requests(ws),
  [`POST ${org}/invitations`]: 'Invite somebody to the organization',
  [`DELETE ${org}/invitations/{invitation}`]: 'Withdraw an invitation',
  [`POST ${ws}/invitations`]: 'Invite somebody to a workspace',
  [`DELETE ${ws}/invitations/{invitation}`]: 'Withdraw an invitation',
  'POST /api/invitations/{invitation}/accept': 'Accept an invitation',
  'POST /api/invitations/{invitation}/decline': 'Decline an invitation',
  [`POST ${ws}/serviceaccounts`]: 'Create a bot',
  [`PATCH ${bot}`]: 'Change a bot',
  [`DELETE ${bot}`]: 'Delete a bot',
  [`POST ${bot}/tokens`]: 'Issue a token of a bot',
  [`POST ${bot}/tokens/{token}/rotate`]: 'Rotate a token of a bot',
  [`DELETE ${bot}/tokens`]: 'Revoke all tokens of a bot',
  [`DELETE ${bot}/tokens/{token}`]: 'Revoke a token of a bot',
  [`POST ${bot}/trust`]: 'Let jobs be a bot',
  [`DELETE ${bot}/trust/{trust}`]: 'No longer let jobs be a bot',
  'exchange token': 'Give a job a token of a bot',
  [`POST ${ws}/providers/{entry}/enable`]: 'Enable a provider',
  [`DELETE ${ws}/providers/{entry}/enable`]: 'Disable a provider',
  [`POST ${org}/catalog`]: 'Publish in the catalog',
  [`PUT ${org}/catalog/{entry}`]: 'Change an entry of the catalog',
  [`DELETE ${org}/catalog/{entry}`]: 'Remove an entry of the catalog',
  'POST /api/admin/catalog': 'Publish in the catalog for everybody',
  'PUT /api/admin/catalog/{entry}': 'Change an entry of the catalog for everybody',
  'DELETE /api/admin/catalog/{entry}': 'Remove an entry of the catalog',
  'sign-up': 'Sign up',
  approve: 'Admit a person who was invited, or whom the operator named',
  'unchanged requests': 'Send more requests without effect than are recorded one by one',
  'PATCH /api/users/me': 'Change their own name',
  'DELETE /api/users/{name}': 'Delete an account',
  'POST /api/users/{name}/undelete': 'Undelete an account',
  'PATCH /api/admin/users/{name}': 'Admit or reject a person, or change their quota',
  'DELETE /api/users/me/sessions': 'Sign out everywhere',
  'DELETE /api/users/me/sessions/{session}': 'End a session of their own',
  'DELETE /api/admin/users/{name}/sessions': 'End all sessions of a person',
  'DELETE /api/admin/users/{name}/sessions/{session}': 'End a session of a person',
  'POST /api/credentials': 'Get a credential for kubectl',
  rotate: 'Begin a new file of the audit log',
  'release purges': 'Let purges go on after a restore',
  purge: 'Remove for good what was deleted',
};

/** Those of which the first word says all. @type {Record<string, string>} */
const families = {
  login: 'Sign in', logout: 'Sign out', token: 'Renew a sign-in', confirm: 'Confirm the sign-in of a device', deny: 'Refuse the sign-in of a device',
  replay: 'Carry out after a restore what had ended before', refuse: 'Be refused',
};

/** Those about requests for rights in an Organization or a Workspace. @param {string} place */
function requests(place) {
  const one = `${place}/requests/{request}`;
  return {
    [`POST ${place}/requests`]: 'Ask for rights for a while',
    [`POST ${one}/approve`]: 'Approve a request for rights',
    [`POST ${one}/deny`]: 'Deny a request for rights',
    [`POST ${one}/withdraw`]: 'Withdraw a request for rights',
    [`POST ${one}/revoke`]: 'End what a request gave',
  };
}

/** The verbs of requests to a Workspace. @type {Record<string, string>} */
const verbs = {
  create: 'Create', update: 'Replace', patch: 'Change', delete: 'Delete', deletecollection: 'Delete several', get: 'Read', list: 'List', watch: 'Watch',
  writes: 'Make more changes than are recorded one by one',
};

/** Says what an event did; empty for what has no words. @param {string} action */
export function inWords(action) {
  const proxied = /^kubernetes (\S+)$/.exec(action);
  return proxied ? `${verbs[proxied[1]] || proxied[1]} in a workspace` : words[action] || families[action.split(' ')[0]] || '';
}
