// Talks to the hub. Nothing else does.

/** An answer that is not 2xx, or none at all (status 0). */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {any} body a metav1.Status, or nothing that is known
   * @param {string} request
   */
  constructor(status, body, request) {
    super((body && body.message) || explain(status));
    this.status = status;
    this.reason = (body && body.reason) || '';
    this.request = request;
    /** @type {Array<{reason: string, field: string, message: string}>} */
    this.causes = ((body && body.details && body.details.causes) || []).map((/** @type {any} */ c) => ({
      reason: c.reason || '', field: c.field || '', message: c.message || '',
    }));
  }
}

/** @param {number} status */
function explain(status) {
  if (status === 0) return 'the hub cannot be reached; check your connection and try again';
  if (status === 503) return 'the hub is not available at the moment; try again';
  return `the hub answered with the status ${status}`;
}

/** What the session does about the answers 401 and 403. */
export const hooks = {
  /** Returns true when the person has signed in again. @type {() => Promise<boolean>} */
  unauthenticated: async () => false,
  /** @type {() => void} */
  forbidden: () => {},
  /** The hub did not answer, or cannot serve at present. @type {() => void} */
  unavailable: () => {},
};

/**
 * The last POST without an answer that says whether it was carried out. Repeated with the same
 * key it creates nothing twice.
 */
let unanswered = { request: '', key: '' };

/**
 * The headers that name the tenant. They are those of the path.
 * @param {string} path
 * @param {{org?: string, workspace?: string}} [place]
 */
function tenant(path, place = {}) {
  const found = /^\/api\/orgs\/([^/?]+)(?:\/workspaces\/([^/?]+))?/.exec(path);
  const org = (found && found[1]) || place.org;
  const workspace = (found && found[2]) || place.workspace;
  return { ...(org ? { 'X-Kedge-Org': org } : {}), ...(workspace ? { 'X-Kedge-Workspace': workspace } : {}) };
}

/**
 * @template [B=any]
 * @typedef {object} Options
 * @property {B} [body] is sent as JSON
 * @property {string} [etag] is sent as If-Match
 * @property {boolean} [async] asks for 202 instead of a wait
 * @property {string} [accept]
 * @property {Record<string, string>} [headers] are sent, too
 * @property {{org?: string, workspace?: string}} [place] for paths that do not name it
 * @property {AbortSignal} [signal] ends when the page is left: its answers are dropped
 */

/**
 * Sends a request and returns the answer. It rejects with an ApiError for every answer but 2xx.
 * @template {Method} M
 * @template {string} P
 * @param {M & Documented<M, P>} method
 * @param {P} path
 * @param {Options<Sent<M, P>>} [options]
 * @returns {Promise<{status: number, body: Answer<M, P>, etag: string, location: string}>}
 */
export async function call(method, path, options = {}) {
  /** @type {Record<string, string>} */
  const headers = { Accept: options.accept || 'application/json', ...tenant(path, options.place), ...options.headers };
  if (options.body !== undefined) headers['Content-Type'] = 'application/json';
  if (options.etag) headers['If-Match'] = options.etag;
  if (options.async) headers.Prefer = 'respond-async';
  const request = method === 'POST' && options.body !== undefined ? path + JSON.stringify(options.body) : '';
  if (request) headers['Idempotency-Key'] = unanswered.request === request ? unanswered.key : crypto.randomUUID();
  for (let attempt = 1; ; attempt++) {
    const answer = await send(method, path, headers, options);
    if (answer.status === 0 || answer.status === 503) hooks.unavailable();
    if (request) unanswered = answer.status === 0 || answer.status >= 500 ? { request, key: headers['Idempotency-Key'] } : { request: '', key: '' };
    options.signal?.throwIfAborted();
    if (answer.error === null) return answer;
    if (answer.error.status === 401 && attempt === 1 && (await hooks.unauthenticated())) {
      options.signal?.throwIfAborted();
      continue;
    }
    if (answer.error.status === 403) hooks.forbidden();
    throw answer.error;
  }
}

/**
 * @param {string} method
 * @param {string} path
 * @param {Record<string, string>} headers
 * @param {Options} options
 */
async function send(method, path, headers, options) {
  let response;
  try {
    response = await fetch(path, {
      method, headers, body: options.body === undefined ? undefined : JSON.stringify(options.body),
      // A write is not cut off: it happens, and its page must know only if it is still there.
      signal: method === 'GET' ? options.signal : undefined, redirect: 'error', credentials: 'same-origin', cache: 'no-store',
    });
  } catch (problem) {
    options.signal?.throwIfAborted();
    return { status: 0, body: null, etag: '', location: '', error: new ApiError(0, null, '') };
  }
  const json = (response.headers.get('Content-Type') || '').startsWith('application/json');
  const text = await response.text().catch(() => '');
  let body = /** @type {any} */ (text);
  if (json && text) body = parsed(text);
  const request = response.headers.get('X-Request-Id') || '';
  return {
    status: response.status, body, etag: response.headers.get('ETag') || '', location: response.headers.get('Location') || '',
    error: response.ok ? null : new ApiError(response.status, json ? body : null, request),
  };
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/**
 * Returns all items of a list.
 * @template {string} P
 * @param {P extends Paged<P> ? P : never} path
 * @param {Options} [options]
 * @returns {Promise<Array<Item<P>>>}
 */
export async function all(path, options = {}) {
  const items = [];
  const joint = path.includes('?') ? '&' : '?';
  for (let next = ''; ;) {
    const page = /** @type {string} */ (`${path}${joint}limit=500${next && `&continue=${encodeURIComponent(next)}`}`);
    const { body } = await call('GET', page, options);
    items.push(...body.items);
    next = body.continue;
    if (!next) return items;
  }
}

/** @param {string} org @returns {OrgPath} */
export function orgPath(org) {
  return `/api/orgs/${encodeURIComponent(org)}`;
}

/** @param {string} org @param {string} workspace @returns {WorkspacePath} */
export function workspacePath(org, workspace) {
  return `${orgPath(org)}/workspaces/${encodeURIComponent(workspace)}`;
}
