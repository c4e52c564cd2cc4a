// Categories that say more about a person than most: told by the words in their names, as a help to the eye.

import {h} from './dom.js';
import {SHIELD, drawing} from './icons.js';

const WORDS = [
  /alcohol|\b(wines?|beers?|ales?|ciders?|spirits?|liquors?|whisk(e)?y|vodka|cocktails?|coolers)\b/i,
  /tobacco|cigar|\bvap(e|ing)/i,
  /\b(baby|infants?|diapers?|newborn)\b|pregnan|maternity/i,
  /\bhealth|medic|pharm|remed(y|ies)|analgesic|antacid|laxative|first aid|cold and flu/i,
  /vitamin|diet(ary)? (aid|control)|diabet|incontinen/i,
  /intimate|contracept|condom|feminine|family planning|\bsex|\badult\b/i,
  /religio|kosher|halal|politic/i,
];

/** Whether a category's name sounds sensitive. */
export function isSensitive(category) {
  return category !== undefined && WORDS.some((words) => words.test(category));
}

/** A mark for the eye and the ear. */
export function mark() {
  return h(
    'span',
    {class: 'sensitive', title: 'A category that says more about a person than most'},
    drawing(SHIELD),
    'sensitive',
  );
}
