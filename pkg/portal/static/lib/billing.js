// The cost center and the billing labels of an Organization or a Workspace.

import { ApiError } from './api.js';

/** @param {Record<string, string|null>} [labels] */
export function labelText(labels = {}) {
  return Object.entries(labels).filter(([, value]) => value !== null).sort().map(([key, value]) => `${key}=${value}`).join(', ');
}

/** @type {import('./edit.js').Shown[]} */
export const billingShown = [
  { label: 'Cost center', of: (o) => o.billing?.costCenter || '' },
  { label: 'Billing labels', of: (o) => labelText(o.billing?.labels) },
];

/** @param {{billing: {costCenter?: string, labels?: Record<string, string>}|null}} object */
export function billingFields(object) {
  return [
    { name: 'costCenter', label: 'Cost center', value: object.billing?.costCenter || '', max: 128, hint: 'The account to charge.' },
    { name: 'labels', label: 'Billing labels', value: labelText(object.billing?.labels), hint: 'Keys and values such as team=search, stage=test.' },
  ];
}

/** The cost center of something new. @param {string} hint */
export function newCostCenter(hint) {
  return { name: 'costCenter', label: 'Cost center', max: 128, hint };
}

/** The member billing of a request that creates something. @param {string} costCenter */
export function billingOfNew(costCenter) {
  return costCenter ? { billing: { costCenter } } : {};
}

/**
 * Labels that are not in the text any more are removed, as a merge patch says it.
 * @param {string} costCenter @param {string} text @param {Record<string, string>} before
 */
export function billingPatch(costCenter, text, before) {
  /** @type {Record<string, string|null>} */
  const labels = Object.fromEntries(Object.keys(before).map((key) => [key, null]));
  for (const part of text.split(',').map((p) => p.trim()).filter(Boolean)) {
    const at = part.indexOf('=');
    if (at < 1) throw new ApiError(422, { message: '', details: { causes: [{ field: 'labels', message: `“${part}” is not key=value` }] } }, '');
    labels[part.slice(0, at).trim()] = part.slice(at + 1).trim();
  }
  return { costCenter: costCenter || null, labels };
}
