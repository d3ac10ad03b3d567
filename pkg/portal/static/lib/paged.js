// Lists that are read page by page. Filter and position stand in the URL.

import { call } from './api.js';
import { h } from './dom.js';

/** The items of one page. */
const limit = '50';

/**
 * Reads the page of a list that the URL asks for.
 * @param {import('../app.js').Page} page
 * @param {string} path
 * @param {string[]} filters are parameters of the list
 * @returns {Promise<{items: any[], body: any, pager: any}>} body is the whole answer, and pager leads to the other pages
 */
export async function paged(page, path, filters) {
  const wanted = new URLSearchParams({ limit });
  for (const name of [...filters, 'limit', 'continue']) {
    const value = page.query.get(name);
    if (value) wanted.set(name, value);
  }
  const { body } = await call('GET', `${path}?${wanted}`, { signal: page.signal });
  const at = (/** @type {string} */ position) => {
    const query = new URLSearchParams(page.query);
    query.delete('continue');
    if (position) query.set('continue', position);
    return query.size > 0 ? `${location.pathname}?${query}` : location.pathname;
  };
  const pager = (page.query.has('continue') || body.continue) && h('nav', { class: 'pager actions', 'aria-label': 'Pages' },
    page.query.has('continue') && h('a', { class: 'button', href: at('') }, 'First page'),
    body.continue && h('a', { class: 'button', href: at(body.continue) }, 'Next page'));
  return { items: body.items, body, pager };
}

/**
 * Returns a form that filters a list by name and by further parameters.
 * @param {import('../app.js').Page} page
 * @param {string} label
 * @param {Array<{name: string, label: string, options: Array<[string, string]>}>} [filters]
 */
export function searchForm(page, label, filters = []) {
  const input = h('input', { type: 'search', value: page.query.get('q') || '', 'aria-label': label, placeholder: label, dir: 'auto' });
  const selects = filters.map((f) => {
    const select = h('select', { class: 'inline', 'aria-label': f.label, onchange: () => search() }, f.options.map(([value, text]) => h('option', { value }, text)));
    select.value = page.query.get(f.name) || '';
    return { name: f.name, select };
  });
  const search = () => {
    const query = new URLSearchParams();
    if (input.value.trim()) query.set('q', input.value.normalize('NFC').trim());
    for (const { name, select } of selects) if (select.value) query.set(name, select.value);
    page.go(query.size > 0 ? `${location.pathname}?${query}` : location.pathname);
  };
  return h('form', { class: 'toolbar', role: 'search', onsubmit: (/** @type {Event} */ e) => { e.preventDefault(); search(); } },
    input, selects.map((s) => s.select), h('button', { type: 'submit' }, 'Search'));
}
