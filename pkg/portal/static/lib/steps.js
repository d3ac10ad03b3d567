// The first steps of a person, and which of them are done.

import { all, orgPath } from './api.js';
import { session } from './session.js';

/** @typedef {{name: 'kedge'|'workspace'|'kubectl'|'colleague', title: string, done: boolean}} Step */

const titles = /** @type {Array<[Step['name'], string]>} */ ([
  ['kedge', 'Get kedge and log in'], ['workspace', 'Make a workspace'], ['kubectl', 'Use kubectl in it'], ['colleague', 'Bring in a colleague'],
]);

/** The key in this browser of what the person said about the steps. */
function key() {
  return `kedge-first-steps ${session.me.name}`;
}

/** @returns {string[]} */
function said() {
  return (localStorage.getItem(key()) || '').split(' ').filter(Boolean);
}

/** Keeps that a step is done, or with "all" that the person needs them no more. @param {Step['name']|'all'} name */
export function tick(name) {
  localStorage.setItem(key(), [...new Set([...said(), name])].join(' '));
}

/** Returns the steps; none if the person needs them no more. @param {AbortSignal} signal @returns {Promise<Step[]>} */
export async function openSteps(signal) {
  if (said().includes('all')) return [];
  const steps = await allSteps(signal);
  return steps.every((s) => s.done) ? [] : steps;
}

/** @param {AbortSignal} signal @returns {Promise<Step[]>} */
export async function allSteps(signal) {
  const own = said();
  const found = {
    kedge: (await all('/api/users/me/sessions', { signal })).some((s) => s.client === 'cli'),
    workspace: session.orgs.some((o) => o.workspaces.length > 0),
    kubectl: false,
    colleague: await together(signal),
  };
  return titles.map(([name, title]) => ({ name, title, done: own.includes(name) || own.includes('all') || found[name] }));
}

/** Reports whether the person is in an Organization with somebody else. @param {AbortSignal} signal */
async function together(signal) {
  // In those that only have them as a member of a Workspace, somebody else let them in.
  if (session.orgs.some((o) => o.role === '')) return true;
  for (const org of session.orgs.slice(0, 3)) {
    const members = await all(`${orgPath(org.uuid)}/members`, { signal }).catch(() => []);
    if (members.length > 1) return true;
  }
  return false;
}
