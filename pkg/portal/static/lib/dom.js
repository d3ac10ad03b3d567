// Builds elements. What people typed only ever becomes text: nothing here parses markup.

/**
 * Returns a new element. Properties that begin with "on" are listeners, true is an attribute
 * without a value, and null or false is none.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Node|string|number|null|undefined|false|Array<any>)} children
 * @returns {any}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'class') element.className = value;
    else if (name === 'value' || name === 'checked') Object.assign(element, { [name]: value });
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  append(element, children);
  return element;
}

/**
 * @param {Element} parent
 * @param {Array<any>} children
 */
function append(parent, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(parent, child);
    else if (child !== null && child !== undefined && child !== false) parent.append(child instanceof Node ? child : String(child));
  }
}

/**
 * Returns a name that a person gave, isolated from the direction of the text around it.
 * @param {string|undefined} text
 * @param {string} [fallback]
 */
export function named(text, fallback = '') {
  return h('bdi', {}, text || fallback);
}

/** Says something to screen readers. @param {string} text */
export function announce(text) {
  const announcer = document.getElementById('announcer');
  if (announcer) announcer.textContent = text;
}

/**
 * Returns a paragraph of text, as a note.
 * @param {string} kind
 * @param {...any} children
 */
export function note(kind, ...children) {
  return h('div', { class: `note ${kind}`, role: kind === 'error' ? 'alert' : null }, children);
}
