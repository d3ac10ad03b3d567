// Why somebody may do something in a Workspace, or may not.

import { call } from './api.js';
import { h, note } from './dom.js';
import { capital, end, sentence } from './format.js';
import { button, errorNote, openDialog } from './ui.js';

const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'];

/** @type {Record<string, string>} */
const sources = {
  OrgAdmin: 'as an admin of the organization', Membership: 'by a membership in this workspace',
  Group: 'by a group of the identity provider', Request: 'by a request that was approved',
  DefaultAccess: 'by the default access of the organization', Bot: 'as the bot has it',
};

/** @param {string} who @param {Schema<'Why'>} answer */
function explanation(who, answer) {
  const [source] = answer.through;
  const resource = answer.group ? `${answer.resource}.${answer.group}` : answer.resource;
  return note(answer.allowed ? '' : 'warn',
    h('p', {}, h('bdi', {}, who), answer.allowed ? ' may ' : ' may not ', h('code', {}, `${answer.verb} ${resource}`), ' here.'),
    source && h('p', {}, `The role is ${capital(answer.role || '')}, ${sources[source.through] || source.through}.`, source.expiresAt && [' ', end(source.expiresAt)]),
    answer.missing.map((m) => h('p', {}, h('bdi', {}, sentence(m.message)))));
}

/**
 * Opens a dialog that asks about one of the people.
 * @param {{page: import('../app.js').Page, path: WorkspacePath, people: Array<{user: string, displayName: string}>}} c
 */
export function askWhy(c) {
  const person = h('select', { id: 'why-person' }, c.people.map((p) => h('option', { value: p.user }, p.displayName || p.user)));
  const verb = h('select', { id: 'why-verb' }, verbs.map((v) => h('option', { value: v }, v)));
  const resource = h('input', { id: 'why-resource', type: 'text', autocomplete: 'off', required: true, maxlength: 253, placeholder: 'widgets or widgets.example.org' });
  const answer = h('div', { 'aria-live': 'polite' });
  openDialog('Why?', (close) => {
    const form = h('form', { class: 'stacked' },
      h('div', { class: 'field' }, h('label', { for: 'why-person' }, 'Person'), person),
      h('div', { class: 'field' }, h('label', { for: 'why-verb' }, 'Verb'), verb),
      h('div', { class: 'field' }, h('label', { for: 'why-resource' }, 'Resource, in the plural'), resource),
      answer, h('div', { class: 'actions' }, button('Close', close), h('button', { type: 'submit', class: 'primary' }, 'Ask')));
    form.addEventListener('submit', async (/** @type {Event} */ e) => {
      e.preventDefault();
      const query = new URLSearchParams({ verb: verb.value, user: person.value });
      const [plural, ...group] = resource.value.trim().split('.');
      query.set('resource', plural);
      if (group.length > 0) query.set('group', group.join('.'));
      answer.replaceChildren(note('', h('p', {}, 'Asking…')));
      try {
        const { body } = await call('GET', `${c.path}/why?${query}`, { signal: c.page.signal });
        answer.replaceChildren(explanation(person.selectedOptions[0].text, body));
      } catch (problem) {
        if (!c.page.signal.aborted) answer.replaceChildren(errorNote(problem));
      }
    });
    return [form];
  }, { signal: c.page.signal });
}
