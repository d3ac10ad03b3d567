// Plots of numbers over time, as SVG. A table with the same numbers stands beside them for people who do not see them.

import { h } from './dom.js';

const namespace = 'http://www.w3.org/2000/svg';
const width = 600;
const height = 120;

/**
 * @param {string} tag
 * @param {Record<string, string|number>} attributes
 * @param {...Element} children
 */
function svg(tag, attributes, ...children) {
  const element = document.createElementNS(namespace, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/**
 * Returns bars of equal length of time.
 * @template T
 * @param {string} title
 * @param {{items: T[], at: (item: T) => string, value: (item: T) => number, format: (n: number) => string, from: number, to: number, step: number}} p
 * from and to are the ends of the axis of time, and step the time of a bar, all in milliseconds
 */
export function plot(title, p) {
  const most = Math.max(0, ...p.items.map(p.value));
  const said = `most ${p.format(most)}`;
  const scale = width / Math.max(p.to - p.from, p.step);
  const bars = p.items.map((item) => {
    const tall = most > 0 ? (p.value(item) / most) * height : 0;
    const label = svg('title', {});
    label.textContent = `${new Date(p.at(item)).toLocaleString()}: ${p.format(p.value(item))}`;
    return svg('rect', {
      x: (new Date(p.at(item)).getTime() - p.from) * scale, y: height - tall, width: Math.max(1, p.step * scale - 1), height: tall,
    }, label);
  });
  return h('figure', { class: 'plot' }, h('figcaption', {}, title, ' ', h('span', { class: 'muted small' }, said)),
    svg('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `${title}: ${said}. The table has the numbers.` },
      ...bars, svg('line', { x1: 0, y1: height, x2: width, y2: height })));
}
