// The switcher: where one is, and where one can go.

import { h } from './dom.js';
import { badge, origin } from './format.js';
import { orgOf, session } from './session.js';

/** From so many entries there is a search. */
const searchable = 6;

class Switcher extends HTMLElement {
  /** @type {{org?: string, workspace?: string}} */ place = {};
  /** @type {string} */ extra = '';

  connectedCallback() {
    session.listeners.add(this.draw);
    document.addEventListener('keydown', this.shortcut);
    this.draw();
  }

  disconnectedCallback() {
    session.listeners.delete(this.draw);
    document.removeEventListener('keydown', this.shortcut);
  }

  /** @param {{org?: string, workspace?: string}} place @param {string} [name] of a Workspace that is not in the list */
  at(place, name = '') {
    if (name || place.workspace !== this.place.workspace) this.extra = name;
    this.place = place;
    this.draw();
  }

  draw = () => {
    const org = this.place.org ? orgOf(this.place.org) : undefined;
    const workspace = org?.workspaces.find((w) => w.uuid === this.place.workspace)?.name || (this.place.workspace ? this.extra || 'Workspace' : '');
    const name = org ? org.name : this.place.org ? 'Organization' : 'Choose an organization';
    this.replaceChildren(h('button', { type: 'button', 'aria-haspopup': 'dialog', title: 'Switch organization or workspace ( / )', onclick: () => this.open() },
      h('span', { class: 'where' }, h('bdi', {}, name), workspace && h('span', { class: 'muted' }, '/'), workspace && h('bdi', {}, workspace)),
      h('span', { 'aria-hidden': 'true', class: 'muted' }, '▾')));
  };

  /** @param {KeyboardEvent} e */
  shortcut = (e) => {
    const typing = e.target instanceof Element && e.target.closest('input, textarea, select, dialog');
    if (e.key === '/' && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) {
      e.preventDefault();
      this.open();
    }
  };

  open() {
    const list = h('ul');
    const count = session.orgs.reduce((n, o) => n + 1 + o.workspaces.length, 0);
    const search = count >= searchable && h('input', { type: 'search', 'aria-label': 'Search organizations and workspaces', placeholder: 'Search', autocomplete: 'off' });
    const fill = () => {
      const wanted = search ? search.value.toLocaleLowerCase().trim() : '';
      const found = session.orgs.map((org) => this.entry(org, wanted)).filter(Boolean);
      list.replaceChildren(...(found.length > 0 ? found : [h('li', { class: 'empty' }, wanted ? 'Nothing has this name.' : 'You are not in any organization yet.')]));
    };
    const dialog = h('dialog', { class: 'switcher', 'aria-label': 'Organizations and workspaces' }, search, list,
      h('ul', {}, h('li', {}, h('a', { href: '/ui/' }, 'All organizations'))));
    fill();
    session.listeners.add(fill);
    if (search) search.addEventListener('input', fill);
    dialog.addEventListener('keydown', (/** @type {KeyboardEvent} */ e) => move(dialog, e));
    dialog.addEventListener('click', (/** @type {MouseEvent} */ e) => {
      if (e.target === dialog || (e.target instanceof Element && e.target.closest('a'))) dialog.close();
    });
    // The back button leads away from it, too.
    const leave = () => dialog.close();
    addEventListener('popstate', leave);
    dialog.addEventListener('close', () => {
      removeEventListener('popstate', leave);
      session.listeners.delete(fill);
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
  }

  /** @param {import('./session.js').Org} org @param {string} wanted */
  entry(org, wanted) {
    const has = (/** @type {string} */ text) => text.toLocaleLowerCase().includes(wanted);
    const workspaces = org.workspaces.filter((w) => !wanted || has(w.name) || has(org.name));
    if (wanted && !has(org.name) && workspaces.length === 0) return null;
    const here = org.uuid === this.place.org;
    return h('li', {},
      h('a', { href: `/ui/orgs/${org.uuid}`, 'aria-current': here && !this.place.workspace ? 'page' : null },
        h('bdi', {}, org.name), ' ', org.personal && badge('', 'personal'), origin(org.createdAt, org.firstAdmin)),
      workspaces.length > 0 && h('ul', {}, workspaces.map((w) => h('li', {},
        h('a', { href: `/ui/orgs/${org.uuid}/workspaces/${w.uuid}`, 'aria-current': here && w.uuid === this.place.workspace ? 'page' : null }, h('bdi', {}, w.name))))));
  }
}
customElements.define('kedge-switcher', Switcher);

/** Moves between the entries with the arrow keys. @param {HTMLElement} dialog @param {KeyboardEvent} e */
function move(dialog, e) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
  if (!step) return;
  e.preventDefault();
  const entries = /** @type {HTMLElement[]} */ ([...dialog.querySelectorAll('input, a')]);
  const at = entries.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  entries[Math.min(Math.max(at + step, 0), entries.length - 1)].focus();
}
