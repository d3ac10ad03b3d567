// Changes of objects that somebody else may change at the same time.

import { ApiError, call } from './api.js';

/** So often a change is sent again after a change of something that the form does not show. */
const attempts = 5;

/**
 * A field of an object, in words.
 * @typedef {{label: string, of: (object: any) => string}} Shown
 */

/** Somebody else has changed the object since the form was opened. */
export class Changed extends Error {
  /**
   * @param {Array<{label: string, now: string, yours: string}>} rows
   * @param {() => void} theirs shows the object as it is now
   */
  constructor(rows, theirs) {
    super('somebody else has changed this meanwhile');
    this.rows = rows;
    this.theirs = theirs;
  }
}

/**
 * Returns a function that sends a change of an object. It rejects with Changed if a field that is
 * shown has another value than the person saw, unless it is the one that they want; called again,
 * it puts theirs in its place. The body of a change may be a function of the object as it is.
 * @param {object} e
 * @param {string} e.path
 * @param {any} e.seen is the object that the person sees
 * @param {string} [e.etag] is the ETag of that; none if a list showed it
 * @param {Shown[]} e.shown
 * @param {() => void} e.theirs shows the object as it is now
 * @param {AbortSignal} [e.signal]
 * @returns {(method: 'PUT'|'PATCH'|'DELETE', body?: any, query?: string) => Promise<{body: any, etag: string}>}
 */
export function editor(e) {
  let { seen, etag } = e;
  return async (method, body, query = '') => {
    for (let attempt = 1; ; attempt++) {
      if (etag) {
        try {
          const answer = await call(method, e.path + query, { body: of(body, seen), etag, signal: e.signal });
          if (answer.etag) ({ body: seen, etag } = answer);
          return answer;
        } catch (problem) {
          if (!(problem instanceof ApiError) || problem.status !== 412 || attempt >= attempts) throw problem;
        }
      }
      const now = await call('GET', e.path, { signal: e.signal });
      const before = seen;
      const wanted = body === undefined ? before : { ...before, ...of(body, before) };
      ({ body: seen, etag } = now);
      const rows = e.shown.filter((s) => s.of(seen) !== s.of(wanted));
      if (rows.some((s) => s.of(seen) !== s.of(before))) {
        throw new Changed(rows.map((s) => ({ label: s.label, now: s.of(seen), yours: s.of(wanted) })), e.theirs);
      }
    }
  };
}

/** @param {any} body @param {any} object */
function of(body, object) {
  return typeof body === 'function' ? body(object) : body;
}
