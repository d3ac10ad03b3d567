// Whether the hub can be reached. A page that is open tells, and goes on by itself.

import { hooks } from './api.js';
import { announce } from './dom.js';

/** How long to wait before the hub is asked again, in milliseconds: at first, and at most. */
const [soonest, latest] = [1000, 8000];

/** @type {Set<() => void>} */
const listeners = new Set();
let away = false;
let wait = soonest;
/** When the hub was back last. */
let backAt = 0;

/** Calls a function each time that the hub can be reached again. @param {() => void} back */
export function onBack(back) {
  listeners.add(back);
}

function draw() {
  const bar = /** @type {HTMLElement} */ (document.getElementById('offline'));
  bar.hidden = navigator.onLine && !away;
  if (bar.hidden) return;
  bar.textContent = navigator.onLine
    ? 'The hub cannot be reached at the moment. This page goes on by itself once it is back; what you typed is kept.'
    : 'You are offline. What you see may be out of date; changes are not possible until the connection is back.';
}

function ask() {
  setTimeout(async () => {
    const answer = await fetch('/api/users/me', { cache: 'no-store' }).catch(() => null);
    wait = Math.min(2 * wait, latest);
    if (!answer || answer.status === 503) return void ask();
    away = false;
    backAt = Date.now();
    draw();
    announce('The hub can be reached again');
    for (const back of listeners) back();
  }, wait);
}

hooks.unavailable = () => {
  if (away) return;
  away = true;
  // What is away again at once was not really back.
  if (Date.now() - backAt > 2 * latest) wait = soonest;
  draw();
  ask();
};
addEventListener('online', draw);
addEventListener('offline', draw);
draw();
