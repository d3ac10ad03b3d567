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
  'remove member': 'Remove a member',
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
  [`POST ${ws}/providers/{entry}/enable`]: 'Enable a provider',
  [`DELETE ${ws}/providers/{entry}/enable`]: 'Disable a provider',
  [`POST ${org}/catalog`]: 'Publish in the catalog',
  [`PUT ${org}/catalog/{entry}`]: 'Change an entry of the catalog',
  [`DELETE ${org}/catalog/{entry}`]: 'Remove an entry of the catalog',
};

/** The verbs of requests to a Workspace. @type {Record<string, string>} */
const verbs = {
  create: 'Create', update: 'Replace', patch: 'Change', delete: 'Delete', deletecollection: 'Delete several', get: 'Read', list: 'List', watch: 'Watch',
};

/** Says what an event did; empty for what has no words. @param {string} action */
export function inWords(action) {
  const proxied = /^kubernetes (\S+)$/.exec(action);
  return proxied ? `${verbs[proxied[1]] || proxied[1]} in a workspace` : words[action] || '';
}
