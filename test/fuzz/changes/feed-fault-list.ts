/** Faults of the feeds, each of which the fuzz of feeds has to see. */
import type { Fault } from '../faults/fault.ts';

const AUDIENCE = 'src/changes/audience.ts';
const COMMITS = 'src/changes/commits.ts';
const EVENTS = 'src/changes/events.ts';
const FEEDS = 'src/changes/change-feeds.ts';
const GROUPS = 'src/changes/feed-groups.ts';
const LOG = 'src/changes/change-log.ts';
const REPLAY = 'src/changes/replay.ts';
const SENDER = 'src/changes/feed-sender.ts';
const SIGHT = 'src/changes/filter-sight.ts';
const TOUCHED = 'src/policy/analyse/touched-rows.ts';

const fault = (file: string, name: string, find: RegExp, put: string): Fault => ({ file, name, find, put });

export const FEED_FAULTS: readonly Fault[] = [
  fault(LOG, 'a transaction that commits late is skipped', / OR e\.xid = ANY\([^`]*\)`/, ')`'),
  fault(LOG, 'a commit is divided between two pages', /commits\.join\(page\.entries\)/g, 'page.entries'),
  fault(REPLAY, 'a replay shows what a later page hides', /isReplay: isOfMany[^}]*\}/, 'isReplay: false }'),
  fault(SENDER, 'the first of two events of one place ends it', /const isLast = [^;]*;/, 'const isLast = true;'),
  fault(
    COMMITS,
    'the image before a commit is that of its last write',
    /known === undefined \? before : known\.before/,
    'before',
  ),
  fault(COMMITS, 'commits are merged with each other', /: `\$\{xid\} \$\{id\}`/, ': id'),
  fault(
    EVENTS,
    'a record leaves that was not listed',
    /if \(!wasListed && !isListed\) return undefined;([\s\S]*?)return wasListed && !isListed\s*\?/,
    '$1return before !== undefined ?',
  ),
  fault(
    EVENTS,
    'a record stays that is not listed any more',
    /const isListed = after !== undefined && /,
    'const isListed = after !== undefined || ',
  ),
  fault(EVENTS, 'an earlier state is shown that is hidden now', /\(after === newest \|\| [^)]*\)\)/, 'true'),
  fault(EVENTS, 'a related change resets nobody', /\? 'related' : undefined/, '? undefined : undefined'),
  fault(EVENTS, 'a has_one moves unseen', /if \(left\.length === 0\) return \[\];/, 'if (left.length >= 0) return [];'),
  fault(AUDIENCE, 'the groups of two callers are one', /\.map\(permitSpelling\)/, '.map(({ shape }) => shape)'),
  fault(
    AUDIENCE,
    'a group has the masks of another one',
    /\[\.\.\.all, \.\.\.this\.#sight\.permits/,
    '[this.#permit, ...this.#sight.permits',
  ),
  fault(FEEDS, 'a caller who has changed keeps the former rules', /subscriber\.renew\(\);/, ''),
  fault(AUDIENCE, 'the groups of two filters are one', /\[shape, values\]\),\n {6}members/, 'null),\n      members'),
  fault(AUDIENCE, 'the groups of two choices of fields are one', /\[\.\.\.members\]\.toSorted\(\)/, 'null'),
  fault(AUDIENCE, 'a mask hides nothing', /\? \[\] : \[name\]/, '? [] : []'),
  fault(
    AUDIENCE,
    'the mask of a state is that of the newest',
    /permit\.test\(row, related\) && permit\.test\(newest\.row/,
    'permit.test(newest.row',
  ),
  fault(AUDIENCE, 'a filter sees what is hidden', /filter\.matches\(visible, seen, /, 'filter.matches(row, seen, '),
  fault(
    SIGHT,
    'a filter sees hidden related records',
    /if \(this\.#walked\.size === 0\)/,
    'if (this.#walked.size >= 0)',
  ),
  fault(SIGHT, 'a filter sees hidden members of related records', /maskedRow\(row, masks, related\)/, 'row'),
  fault(
    AUDIENCE,
    'a related change that a filter reads resets nobody',
    /if \(!this\.#asked\.some\([^;]*\) return false;/,
    'return false;',
  ),
  fault(AUDIENCE, 'the rules on which a filter depends reset nobody', /, \.\.\.this\.#sight\.permits\];/, '];'),
  fault(AUDIENCE, 'a hidden partner is shown', /!permits\.every\(/, '![].every('),
  fault(GROUPS, 'a group is found by the first of its pins', /pins\.flatMap\(/, 'pins.slice(0, 1).flatMap('),
  fault(GROUPS, 'the groups without pins are left out', /new Set\(this\.#open\)/, 'new Set<FeedGroup>()'),
  fault(
    GROUPS,
    'related changes visit no other group',
    /for \(const group of this\.#related\)/,
    'for (const group of [] as FeedGroup[])',
  ),
  fault(TOUCHED, 'rows that meet the first test alone count', /tests\.some\(/, 'tests.every('),
  fault(
    FEEDS,
    'a burst shows what a later page hides',
    /publishOrReset\(batch, isOfMany\)/,
    'publishOrReset(batch, false)',
  ),
  fault(
    FEEDS,
    'a slow reader of a burst loses the rest',
    /await this\.#replay\(subscriber\)\.since\(start\)/,
    '{ life, moment: to }',
  ),
  fault(
    FEEDS,
    'a subscriber who catches up misses a batch',
    / \|\| !moment\.snapshot\.covers\(tail\.moment\.snapshot\)/,
    '',
  ),
];
