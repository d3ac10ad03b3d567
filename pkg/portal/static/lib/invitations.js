// The answers to invitations, and what keeps one through a login.

import { ApiError, call } from './api.js';

/** @typedef {{id: string, secret: string}} Link */

const kept = 'kedge-invitation';

/** The headers that present the secret of a link. @param {string} secret @returns {Record<string, string>} */
export function presenting(secret) {
  return secret ? { 'X-Kedge-Invitation': secret } : {};
}

/**
 * Has the hub keep the link in a cookie and goes to the login, which comes back to the page. A form would
 * not do: browsers apply the form-action of the page to the redirects after a form, too.
 * @param {Link} link
 */
export async function signInWith({ id, secret }) {
  const response = await fetch('/auth/invitation', {
    method: 'POST', body: new URLSearchParams({ id, secret }), redirect: 'manual', credentials: 'same-origin', cache: 'no-store',
  }).catch(() => null);
  if (!response) throw new ApiError(0, null, '');
  if (response.type !== 'opaqueredirect') throw new ApiError(response.status, null, response.headers.get('X-Request-Id') || '');
  sessionStorage.setItem(kept, id);
  location.assign(`/auth/login?return_to=${encodeURIComponent(`/ui/invitations/${id}`)}`);
}

/** Reports, once, whether this tab went to the login to accept the invitation. @param {string} id */
export function cameBack(id) {
  const is = sessionStorage.getItem(kept) === id;
  sessionStorage.removeItem(kept);
  return is;
}

/** Accepts and returns the page of the place. @param {Link} link @param {AbortSignal} signal */
export async function accept({ id, secret }, signal) {
  const { body } = await call('POST', `/api/invitations/${id}/accept`, { headers: presenting(secret), signal });
  return `/ui/orgs/${body.orgUUID}${body.workspaceUUID ? `/workspaces/${body.workspaceUUID}` : ''}`;
}

/** @param {Link} link @param {AbortSignal} signal */
export async function decline({ id, secret }, signal) {
  await call('POST', `/api/invitations/${id}/decline`, { headers: presenting(secret), signal });
}
